// Opens HTML reports in headless Chromium, in light and dark, wide and on a
// phone, and fails on accessibility findings of axe-core, script errors, network
// requests and sideways scrolling. It tells how long each took to load.
//
//   node check.mjs FOLDER_OF_REPORTS [FOLDER_FOR_SCREENSHOTS]
//
// The browser is $CHROMIUM, or the chromium or google-chrome of the PATH.
import { accessSync, constants, mkdirSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import { createRequire } from 'node:module';
import puppeteer from 'puppeteer-core';

const [from, to] = process.argv.slice(2);
if (!from) {
  console.error('usage: node check.mjs FOLDER [SCREENSHOTS]');
  process.exit(2);
}

function findBrowser() {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  for (const name of ['chromium', 'google-chrome']) {
    for (const dir of process.env.PATH.split(delimiter)) {
      const path = join(dir, name);
      try {
        accessSync(path, constants.X_OK);
        return path;
      } catch { /* the next one */ }
    }
  }
  console.error('no chromium or google-chrome on the PATH: install one, or set CHROMIUM');
  process.exit(2);
}

// The browser must fetch nothing by itself either.
const flags = ['--disable-background-networking', '--disable-component-update', '--disable-default-apps', '--disable-domain-reliability',
  '--disable-extensions', '--disable-sync', '--no-default-browser-check', '--no-first-run', '--no-pings', '--host-resolver-rules=MAP * ~NOTFOUND'];
if (process.getuid?.() === 0) flags.push('--no-sandbox'); // Chromium has none for root

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
if (to) mkdirSync(to, { recursive: true });
const browser = await puppeteer.launch({ executablePath: findBrowser(), args: flags });
let bad = 0;
const fail = (name, text) => { bad++; console.error(`${name}: ${text}`); };

async function open(file, name, scheme, width) {
  const page = await browser.newPage();
  await page.setBypassCSP(true); // for axe; the page itself must not need it
  await page.setViewport({ width, height: 900 });
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
  page.on('pageerror', (e) => fail(name, `script error: ${e.message}`));
  page.on('request', (r) => { if (!/^(file|data):/.test(r.url())) fail(name, `request to ${r.url()}`); });
  const start = performance.now();
  await page.goto('file://' + resolve(from, file), { waitUntil: 'load' });
  console.log(`${name}: ${Math.round(performance.now() - start)} ms`);
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  if (overflow > 0) fail(name, `scrolls sideways by ${overflow} px`);
  return page;
}

async function accessibility(page, name) {
  await page.evaluate(() => { // what is folded is read, too
    const all = document.querySelectorAll('details');
    if (all.length < 40) all.forEach((d) => { d.open = true; });
  });
  await page.evaluate(axe);
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  for (const v of found.violations) fail(name, `axe: ${v.impact}: ${v.id}: ${v.help}; ${v.nodes.length} places, e.g. ${v.nodes[0].html.slice(0, 160)}`);
}

// With its script the table of results can be searched, filtered and sorted.
async function tools(page, name) {
  const rows = () => page.evaluate(() => [...document.querySelectorAll('#rows tbody tr')].filter((r) => r.getClientRects().length).map((r) => r.innerText));
  const all = await rows();
  if (!all.length) return; // no table of results: a history
  await page.type('#find', 'no row has this name');
  if ((await rows()).length) fail(name, 'the search field filters nothing');
  await page.evaluate(() => { const f = document.getElementById('find'); f.value = ''; f.dispatchEvent(new Event('input')); });
  await page.click('#only');
  if ((await rows()).length !== await page.evaluate(() => document.querySelectorAll('#rows tbody tr[data-marked="1"]').length)) fail(name, 'the marked rows are not those that are left');
  await page.click('#only');
  await page.focus('#rows thead button');
  await page.keyboard.press('Enter');
  const down = await rows();
  await page.keyboard.press('Enter');
  const up = await rows();
  if (down.length !== all.length || (all.length > 3 && down.join() === up.join())) fail(name, 'the keyboard sorts nothing');
}

const looks = [['light', 'wide', 1300], ['dark', 'phone', 390], ['dark', 'wide', 1300], ['light', 'phone', 390]];
let count = 0;
for (const file of readdirSync(from).filter((f) => f.endsWith('.html'))) {
  // One template makes all pages, so each is looked at once, in light and dark
  // by turns; a very large one is more of the same, and only loaded.
  const large = statSync(join(from, file)).size > 300000;
  const mine = count++ % 2;
  for (const [k, [scheme, size, width]] of looks.entries()) {
    if (k !== mine && !to) continue;
    const name = `${file.replace(/\.html$/, '')} ${scheme} ${size}`;
    const page = await open(file, name, scheme, width);
    if (to) await page.screenshot({ path: join(to, name.replaceAll(' ', '-') + '.png'), fullPage: !large });
    if (k === mine) {
      if (!large) await accessibility(page, name);
      await tools(page, name);
    }
    await page.close();
  }
}
await browser.close();
process.exit(bad ? 1 : 0);
