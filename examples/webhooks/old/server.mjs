import http from 'node:http'
import { Webhooks, createNodeMiddleware } from '@octokit/webhooks'

// log writes what is at least as grave as LOG_LEVEL says.
const levels = ['debug', 'info', 'warn', 'error']
const least = levels.indexOf(process.env.LOG_LEVEL ?? 'info')
const log = {}
levels.forEach((level, i) => {
  log[level] = i < least ? () => {} : (...args) => console.error(level, ...args)
})

const webhooks = new Webhooks({ secret: process.env.WEBHOOK_SECRET, log })

let commits = 0
webhooks.on('push', ({ id, payload }) => {
  commits += payload.commits.length
  log.info(`${id}: ${payload.commits.length} commits to ${payload.repository.full_name}, ${commits} in all`)
})

const middleware = createNodeMiddleware(webhooks, { path: '/api/github/webhooks', log })

http.createServer((req, res) => {
  if (req.url === '/healthz') return res.end('ok')
  middleware(req, res)
}).listen(Number(process.env.PORT), '127.0.0.1')
