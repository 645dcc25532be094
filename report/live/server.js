// The server of the live checks: three routes, and a slowdown of a known
// number of loop iterations in each request.
const http = require('http')
const port = Number(process.argv[2])
const spins = Number(process.env.SPINS || 0)

function spin (n) {
  let x = 1
  for (let i = 0; i < n; i++) x = (Math.imul(x, 1103515245) + 12345) & 0x7fffffff
  return x
}

const item = { id: 7, name: 'seven', tags: ['a', 'b', 'c'], price: 12.5 }
http.createServer((req, res) => {
  let keep = spins > 0 ? spin(spins) : 0
  if (keep === -1) res.setHeader('x-never', '1')
  if (req.url === '/json') {
    res.setHeader('content-type', 'application/json')
    res.end(JSON.stringify(item))
  } else if (req.method === 'POST') {
    let size = 0
    req.on('data', d => { size += d.length })
    req.on('end', () => res.end(String(size)))
  } else {
    res.end('hello')
  }
}).listen(port, '127.0.0.1')
