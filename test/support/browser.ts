import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { launch, type Browser as Chromium } from 'puppeteer-core';
import { ComponentUnavailableError } from '../../tools/lab/lab.ts';
import { PROJECT } from './markdown.ts';

const CHROMIUM = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];
/** Screenshots. They are not committed; those in the documentation are copied by hand. */
const PICTURES = join(PROJECT, '.holdfast', 'pictures');
const TIMEOUT_MS = 60_000;

/** @throws ComponentUnavailableError */
export function findChromium(): string {
  const found = CHROMIUM.find((path) => existsSync(path));
  if (found === undefined)
    throw new ComponentUnavailableError('chromium', 'no browser is here: apt-get install chromium');
  return found;
}

/** A browser with an empty profile, without a window. */
export class Browser {
  readonly #chromium: Chromium;

  private constructor(chromium: Chromium) {
    this.#chromium = chromium;
  }

  static async open(): Promise<Browser> {
    // Root has no sandbox; the pages are Holdfast's own.
    return new Browser(
      await launch({
        executablePath: findChromium(),
        args: ['--no-sandbox', '--disable-gpu'],
        defaultViewport: { width: 1400, height: 1100 },
      }),
    );
  }

  /**
   * Opens a page, waits until it shows all these texts, and saves a screenshot as
   * `.holdfast/pictures/NAME.png`.
   * @throws Error with the text of the page
   */
  async see(url: string, name: string, texts: readonly string[]): Promise<void> {
    const page = await this.#chromium.newPage();
    try {
      await page.goto(url, { timeout: TIMEOUT_MS });
      const shows = `${JSON.stringify(texts)}.every((text) => document.body.innerText.includes(text))`;
      await page.waitForFunction(shows, { timeout: TIMEOUT_MS }).catch(async (error: unknown) => {
        throw new Error(
          `${url} does not show ${texts.join(', ')}: ${String(await page.evaluate('document.body.innerText'))}`,
          { cause: error },
        );
      });
      mkdirSync(PICTURES, { recursive: true });
      await page.screenshot({ path: join(PICTURES, `${name}.png`) });
    } finally {
      await page.close();
    }
  }

  async close(): Promise<void> {
    await this.#chromium.close();
  }
}
