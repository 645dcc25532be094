'use strict'

// order adds up an order.
exports.order = function (body) {
  const { customer, items } = JSON.parse(body)
  let total = 0
  for (const item of items) total += item.count * item.cents
  return { customer, items: items.length, total }
}
