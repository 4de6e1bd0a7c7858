/** The project's Markdown files, parsed for the tests of the documentation. */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

export const PROJECT = fileURLToPath(new URL('../..', import.meta.url));

export interface CodeBlock {
  readonly language: string;
  readonly text: string;
}

export interface Page {
  /** Path relative to the project. */
  readonly path: string;
  readonly text: string;
  /** Fenced blocks. */
  readonly blocks: readonly CodeBlock[];
  /** Inline code and the lines of shell blocks, which contain commands and names. */
  readonly code: readonly string[];
  readonly links: readonly string[];
  /** Anchors of the headings, as on GitHub. */
  readonly anchors: readonly string[];
}

/** Returns README and other pages in the project's root, in docs/ and next to code. */
export function pages(): Page[] {
  return globSync(
    [
      '*.md',
      'docs/**/*.md',
      '{core,workflows,activities,worker,supervisor,uploader,deploy,demo,tools}/**/*.md',
    ],
    { cwd: PROJECT, exclude: ['**/node_modules/**'] },
  )
    .toSorted()
    .map(page);
}

function page(path: string): Page {
  const text = readFileSync(join(PROJECT, path), 'utf8');
  const blocks = [...text.matchAll(/^```(\w*)\n([^]*?)^```$/gm)].map(
    ([, language = '', block = '']) => ({ language, text: block }),
  );
  const prose = text.replace(/^```[^]*?^```$/gm, '');
  const inline = [...prose.matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => code);
  const commands = blocks
    .filter(({ language }) => language === 'sh')
    .flatMap((block) => shellLines(block.text));
  return {
    path,
    text,
    blocks,
    code: [...inline, ...commands],
    links: [...prose.replace(/`[^`\n]+`/g, '').matchAll(/\]\(([^)\s]+)\)/g)].map(
      ([, target = '']) => target,
    ),
    anchors: [...prose.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => slug(heading)),
  };
}

/** Lines with continuations joined, and without comments. */
function shellLines(text: string): string[] {
  return text
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .map((line) => line.replace(/(^|\s)#.*$/, '').trim())
    .filter((line) => line !== '');
}

function slug(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(' ', '-');
}

/** The file (relative to the project) and the anchor that a relative link names. */
export function resolveLink(from: string, link: string): { file: string; anchor: string } {
  const [target = '', anchor = ''] = link.split('#');
  return { file: target === '' ? from : normalize(join(dirname(from), target)), anchor };
}
