// Opens HTML reports in headless Chromium and fails on accessibility findings
// of axe-core, script errors, network requests, sideways scrolling of the page
// or a slow start; writes screenshots in light and dark, wide and narrow.
//
//   node check.mjs FOLDER_OF_REPORTS [FOLDER_FOR_SCREENSHOTS]
//
// Chromium is taken from $CHROMIUM, or /usr/bin/chromium.
import { readFileSync, readdirSync, mkdirSync, existsSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createRequire } from 'node:module';
import puppeteer from 'puppeteer-core';

const [from, to] = process.argv.slice(2);
const browserPath = process.env.CHROMIUM || '/usr/bin/chromium';
if (!from || !existsSync(browserPath)) {
  console.error(from ? `no browser at ${browserPath}: install chromium or set CHROMIUM` : 'usage: node check.mjs FOLDER [SCREENSHOTS]');
  process.exit(2);
}
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
if (to) mkdirSync(to, { recursive: true });
const browser = await puppeteer.launch({ executablePath: browserPath, args: ['--no-sandbox'] });
let bad = 0;
const fail = (name, text) => { bad++; console.error(`${name}: ${text}`); };

for (const file of readdirSync(from).filter((f) => f.endsWith('.html'))) {
  for (const scheme of ['light', 'dark']) {
    for (const [size, width] of [['wide', 1300], ['phone', 390]]) {
      const name = `${file.replace(/\.html$/, '')} ${scheme} ${size}`;
      const page = await browser.newPage();
      await page.setBypassCSP(true); // for axe; the page itself must not need it
      await page.setViewport({ width, height: 900 });
      await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
      page.on('pageerror', (e) => fail(name, `script error: ${e.message}`));
      page.on('request', (r) => { if (!/^(file|data):/.test(r.url())) fail(name, `request to ${r.url()}`); });
      const start = performance.now();
      await page.goto('file://' + resolve(from, file), { waitUntil: 'load' });
      const took = performance.now() - start;
      if (took > 1000) fail(name, `took ${Math.round(took)} ms to load`);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      if (overflow > 0) fail(name, `scrolls sideways by ${overflow} px`);
      await page.evaluate(() => document.querySelectorAll('details').forEach((d) => { if (document.querySelectorAll('details').length < 40) d.open = true; }));
      await page.evaluate(axe);
      const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
      for (const v of found.violations) fail(name, `axe: ${v.impact}: ${v.id}: ${v.help}; ${v.nodes.length} places, e.g. ${v.nodes[0].html.slice(0, 160)}`);
      if (to) await page.screenshot({ path: join(to, name.replaceAll(' ', '-') + '.png'), fullPage: statSync(join(from, file)).size < 300000 });
      console.log(`${name}: ${Math.round(took)} ms, ${found.violations.length} findings`);
      await page.close();
    }
  }
}
await browser.close();
process.exit(bad ? 1 : 0);
