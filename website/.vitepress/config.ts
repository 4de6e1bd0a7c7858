/** The documentation as a site: the pages of docs/ as they are, and the reference that TypeDoc makes of the sources (`npm run docs:build`). */
import { globSync, readFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { slug } from 'github-slugger';
import { defineConfig, type DefaultTheme } from 'vitepress';

const PROJECT = new URL('../../', import.meta.url);
const API = new URL('../api/', import.meta.url);

/** A page by its path in the project, called after its heading. */
function page(path: string): DefaultTheme.SidebarItem {
  const [, heading] = /^# (.+)$/m.exec(readFileSync(new URL(`${path}.md`, PROJECT), 'utf8')) ?? [];
  if (heading === undefined) throw new Error(`${path}.md has no heading`);
  return { text: heading.replaceAll('`', ''), link: `/${path}` };
}

const NAMED = {
  Begin: ['docs/quickstart', 'docs/concepts', 'docs/install', 'docs/authentication', 'docs/gitea', 'docs/migrate', 'examples/README'],
  Use: ['docs/comparison', 'docs/lifecycle', 'docs/runner-sets', 'docs/jobs', 'docs/sweep', 'docs/cli', 'docs/plugin'],
  Run: ['docs/configuration', 'docs/operations', 'docs/troubleshooting', 'docs/security', 'docs/supervisor', 'docs/benchmarks'],
  'Work on it': ['docs/architecture', 'docs/testing', 'docs/releasing', 'CONTRIBUTING', 'tools/simulator/README', 'docs/licenses', 'SECURITY'],
};

/** Pages that would drown what operators look for: the reference has a list of its own, and tests are for contributors. */
const UNSEARCHED = /^((website\/)?api\/|docs\/(testing|releasing|licenses)\.md|tools\/)/;

/** The pages by what readers want; one that nobody has named yet is found all the same. */
function guide(): DefaultTheme.SidebarItem[] {
  const named = Object.values(NAMED).flat();
  const others = globSync('docs/*.md', { cwd: fileURLToPath(PROJECT) }).map((path) => path.replace(/\.md$/, '')).filter((path) => !named.includes(path)).toSorted();
  return Object.entries({ ...NAMED, Run: [...NAMED.Run, ...others] }).map(([text, paths]) => ({ text, items: paths.map(page) }));
}

/** The entry points of the package, and under each what it exports, as TypeDoc has written it. */
function reference(): DefaultTheme.SidebarItem[] {
  const files = globSync('**/*.md', { cwd: fileURLToPath(API) }).toSorted();
  const modules = files.filter((path) => path.endsWith('/index.md')).map((path) => dirname(path));
  return modules.map((name) => ({
    text: name,
    link: `/api/${name}/`,
    collapsed: name !== 'holdfast',
    items: files.filter((path) => dirname(dirname(path)) === name && basename(path) !== 'index.md').map((path) => ({ text: basename(path, '.md'), link: `/api/${path.replace(/\.md$/, '')}` })),
  }));
}

export default defineConfig({
  title: 'Holdfast',
  description: 'Self-hosted CI runners on Kubernetes as durable Temporal workflows',
  lang: 'en',
  srcDir: '..',
  outDir: '.vitepress/dist',
  cacheDir: '.vitepress/cache',
  srcExclude: ['{.ci,.holdfast,activities,core,coverage,demo,deploy,dist,schemas,supervisor,test,uploader,worker,workflows}/**', 'tools/!(simulator)/**', 'website/node_modules/**'],
  rewrites: { 'README.md': 'index.md', 'website/api/:rest*': 'api/:rest*' },
  cleanUrls: true,
  ignoreDeadLinks: [/^https?:\/\/localhost/],
  markdown: {
    // As GitHub makes them: a link to a heading holds in both.
    anchor: { slugify: slug },
  },
  // The pages are outside of this folder, and its packages above none of them.
  vite: { resolve: { alias: [{ find: /^vue(\/server-renderer)?$/, replacement: `${fileURLToPath(new URL('../node_modules/vue', import.meta.url))}$1` }] } },
  themeConfig: {
    nav: [
      { text: 'Quickstart', link: '/docs/quickstart' },
      { text: 'Examples', link: '/examples/README' },
      { text: 'API', link: '/api/' },
      { text: 'Changelog', link: '/CHANGELOG' },
    ],
    sidebar: {
      '/api/': reference(),
      '/': guide(),
    },
    outline: [2, 3],
    search: { provider: 'local', options: { _render: (src, env, md) => (UNSEARCHED.test(env.relativePath) ? '' : md.render(src, env)) } },
  },
});
