import type { FastifyInstance } from 'fastify';
import { userJson } from './githubJson.ts';
import * as answers from './responses.ts';
import { serve, type Call } from './rest.ts';
import type { World } from './world.ts';

const SINCE = '2024-01-01T00:00:00Z';

/** The user of a token: https://docs.github.com/rest/users/users#get-the-authenticated-user */
export function serveUserEndpoints(server: FastifyInstance, world: World): void {
  const docs = `${answers.DOCS}/users/users#get-the-authenticated-user`;
  serve(server, world, {
    method: 'GET',
    path: '/user',
    docs,
    answer: (call) =>
      call.credential?.kind === 'token'
        ? { status: 200, body: ownUserJson(call.credential.name) }
        : answers.forbidden('app', docs),
  });
}

/** @returns the name that GitHub shows for what the credential does */
export function loginOf(world: World, { credential }: Call): string {
  if (credential?.kind !== 'app') return credential?.name ?? 'anonymous';
  const app = world.settings.apps.find(({ installations }) =>
    installations.some(({ id }) => id === credential.installationId),
  );
  return `${app?.slug ?? `app-${app?.id}`}[bot]`;
}

function ownUserJson(login: string): Record<string, unknown> {
  return {
    ...userJson(login, 'User'),
    name: null,
    company: null,
    blog: '',
    location: null,
    email: null,
    hireable: null,
    bio: null,
    public_repos: 0,
    public_gists: 0,
    followers: 0,
    following: 0,
    created_at: SINCE,
    updated_at: SINCE,
  };
}
