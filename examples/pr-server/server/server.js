'use strict'

const http = require('node:http')
const { WebSocketServer } = require('ws')
const { order } = require('./order')

const port = Number(process.argv[2])
const cache = new Map([['/cached', Buffer.from(page(40))]])

const server = http.createServer((req, res) => {
  switch (req.url) {
    case '/':
      return reply(res, 'text/plain', 'Hello, World!')
    case '/headers':
      return headers(req, res)
    case '/json':
      return json(req, res)
    case '/cached':
      return reply(res, 'text/html', cache.get(req.url))
  }
  res.writeHead(404).end()
})

function reply (res, type, body) {
  res.writeHead(200, { 'content-type': type, 'content-length': Buffer.byteLength(body) })
  res.end(body)
}

// headers reads what a proxy and a browser send, and answers with as many.
function headers (req, res) {
  const h = req.headers
  res.setHeader('x-request-id', h['x-request-id'])
  res.setHeader('x-forwarded-for', h['x-forwarded-for'])
  res.setHeader('vary', 'accept, accept-encoding, accept-language')
  res.setHeader('cache-control', 'private, max-age=0, must-revalidate')
  res.setHeader('etag', '"' + h['if-none-match'].slice(1, -1) + '"')
  res.setHeader('set-cookie', ['session=' + h.cookie.slice(8), 'theme=dark'])
  reply(res, 'text/plain', h.accept)
}

function json (req, res) {
  const parts = []
  req.on('data', (part) => parts.push(part))
  req.on('end', () => {
    reply(res, 'application/json', JSON.stringify(order(Buffer.concat(parts))))
  })
}

function page (rows) {
  let html = '<!doctype html><title>Prices</title><table>'
  for (let i = 0; i < rows; i++) html += `<tr><td>item ${i}<td>${(i * 37) % 100}</tr>`
  return html + '</table>'
}

const sockets = new WebSocketServer({ server, perMessageDeflate: false })
sockets.on('connection', (socket) => {
  socket.on('message', (data, binary) => socket.send(data, { binary }))
})

server.listen(port, '127.0.0.1')
