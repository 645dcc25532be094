(function () {
  'use strict';
  document.documentElement.classList.add('js');
  var table = document.getElementById('rows');
  if (!table) return;
  var body = table.tBodies[0];
  var rows = Array.prototype.slice.call(body.rows);
  var only = document.getElementById('only'), find = document.getElementById('find'), said = document.getElementById('said');
  function filter() {
    var text = find.value.toLowerCase(), shown = 0;
    rows.forEach(function (r) {
      r.hidden = (only.checked && r.dataset.marked !== '1') || r.dataset.name.toLowerCase().indexOf(text) < 0;
      if (!r.hidden) shown++;
    });
    said.textContent = shown + ' of ' + rows.length + ' rows';
  }
  only.addEventListener('change', filter);
  find.addEventListener('input', filter);
  filter();
  Array.prototype.forEach.call(table.tHead.rows[0].cells, function (th, i) {
    if (!th.dataset.sort) return;
    var button = document.createElement('button');
    button.type = 'button';
    button.textContent = th.textContent;
    button.title = 'sort by ' + th.textContent;
    th.textContent = '';
    th.appendChild(button);
    var down = false;
    button.addEventListener('click', function () {
      var number = th.dataset.sort === 'number';
      down = !down;
      Array.prototype.forEach.call(table.tHead.rows[0].cells, function (o) { o.removeAttribute('aria-sort'); });
      th.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      rows.sort(function (a, b) {
        var x = a.cells[i].dataset.value || a.cells[i].textContent, y = b.cells[i].dataset.value || b.cells[i].textContent;
        var d = number ? (parseFloat(x) || 0) - (parseFloat(y) || 0) : x.localeCompare(y);
        return down ? -d : d;
      });
      rows.forEach(function (r) { body.appendChild(r); });
    });
  });
  function all(open) {
    Array.prototype.forEach.call(document.querySelectorAll('details.scenario'), function (d) { d.open = open; });
  }
  document.getElementById('open').addEventListener('click', function () { all(true); });
  document.getElementById('close').addEventListener('click', function () { all(false); });
  // A link to a scenario opens it.
  function target() {
    var d = location.hash && document.getElementById(location.hash.slice(1));
    if (d && d.tagName === 'DETAILS') d.open = true;
  }
  window.addEventListener('hashchange', target);
  target();
})();
