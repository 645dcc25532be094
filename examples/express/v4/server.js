// The same program in v4 and v5: only the express that it is installed with
// differs.
'use strict'

const express = require('express')

const app = express()
app.disable('x-powered-by')

app.get('/plaintext', (req, res) => {
  res.type('text/plain').send('Hello, World!')
})

app.post('/echo', express.json(), (req, res) => {
  res.json(req.body)
})

// As a service has it: a router below a path, a parameter, a query, and a
// handler that is found behind others.
const users = express.Router()
users.get('/', (req, res) => res.json([]))
users.get('/:id', (req, res) => res.json({ id: req.params.id }))
users.get('/:id/orders', (req, res) => res.json([]))
users.get('/:id/orders/:order', (req, res) => {
  res.json({ user: req.params.id, order: req.params.order, fields: req.query.fields })
})
app.use('/api/users', users)

app.listen(Number(process.argv[2]), '127.0.0.1')
