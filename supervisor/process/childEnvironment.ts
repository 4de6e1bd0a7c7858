import { CHILD_ENV_PREFIX, SETTINGS, type Setting } from '../settings/settings.ts';

/**
 * Returns the command's environment: that of the container, without the supervisor's settings, and
 * with the supervisor's own entries.
 */
export function childEnvironment(
  env: NodeJS.ProcessEnv,
  said: Readonly<Record<string, string>>,
): NodeJS.ProcessEnv {
  const ours = new Set(
    SETTINGS.filter((setting: Setting) => setting.rerouted !== true).map(
      (setting) => setting.env as string,
    ),
  );
  const result: NodeJS.ProcessEnv = {};
  const only: NodeJS.ProcessEnv = {};
  for (const [name, value] of Object.entries(env)) {
    if (name.startsWith(CHILD_ENV_PREFIX)) only[name.slice(CHILD_ENV_PREFIX.length)] = value;
    else if (!ours.has(name)) result[name] = value;
  }
  return { ...result, ...only, ...said };
}
