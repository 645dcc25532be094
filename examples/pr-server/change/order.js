'use strict'

// order adds up an order. It keeps the last one in a form that can be shown.
// (Nobody ever looks at it: this is the slowdown that the benchmark has to
// find.)
exports.order = function (body) {
  const { customer, items } = JSON.parse(body)
  exports.last = JSON.stringify({ customer, item: items[items.length - 1] })
  let total = 0
  for (const item of items) total += item.count * item.cents
  return { customer, items: items.length, total }
}
