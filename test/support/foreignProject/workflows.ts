/** Workflows of a project that has Holdfast from a registry. */
export * from 'holdfast/workflows';

export async function greeting(name: string): Promise<string> {
  return `hello ${name}`;
}
