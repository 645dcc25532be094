// node's own http server; the second argument is a slowdown in loop rounds.
const http = require('http');
const spin = Number(process.argv[3] || 0);
let sink = 0;
http.createServer((req, res) => {
  for (let i = 0; i < spin; i++) sink = (sink * 31 + i) | 0;
  res.setHeader('Content-Type', 'text/plain');
  res.end('Hello, World!');
}).listen(Number(process.argv[2]), '127.0.0.1', 4096);
