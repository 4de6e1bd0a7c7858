import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT } from './markdown.ts';

/**
 * Returns a block of docs/quickstart.md.
 * @throws Error if there is no block with that name
 */
export function quickstartBlock(name: string, language = 'sh'): string {
  const [, block] =
    new RegExp(`<!-- quickstart: ${name} -->\\n+\`\`\`${language}\\n([^]*?)\`\`\``).exec(
      readFileSync(join(PROJECT, 'docs/quickstart.md'), 'utf8'),
    ) ?? [];
  if (block === undefined)
    throw new Error(`docs/quickstart.md has no block "${name}" of ${language}`);
  return block;
}
