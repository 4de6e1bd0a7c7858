import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Ajv, type ValidateFunction } from 'ajv';
import addFormatsModule from 'ajv-formats';

const addFormats = addFormatsModule as unknown as (ajv: Ajv) => void;

interface Description {
  paths: Record<
    string,
    Record<
      string,
      {
        responses: Record<string, { $ref?: string; content?: Record<string, { schema?: object }> }>;
      }
    >
  >;
  components: { responses: Record<string, { content?: Record<string, { schema?: object }> }> };
}

/** Checks responses against GitHub's own OpenAPI description (npm @octokit/openapi). */
export class GitHubDescription {
  readonly #description: Description;
  readonly #ajv: Ajv;
  readonly #compiled = new Map<string, ValidateFunction>();

  /** @param edition `ghec` also describes the endpoints of enterprises */
  constructor(edition: 'api.github.com' | 'ghec') {
    const file = createRequire(import.meta.url).resolve(
      `@octokit/openapi/generated/${edition}.json`,
    );
    this.#description = JSON.parse(readFileSync(file, 'utf8'), nullableToJsonSchema) as Description;
    this.#ajv = new Ajv({ strict: false, allErrors: true, validateFormats: true });
    addFormats(this.#ajv);
    this.#ajv.addSchema(this.#description, 'github');
  }

  /**
   * Returns the differences between a response and GitHub's API description. Empty if there are
   * none. An error status that the description does not list for the endpoint is checked as
   * `basic-error`.
   * @throws Error if the description has no such endpoint or no such success status
   */
  problems(method: string, path: string, status: number, body: unknown): string[] {
    const operation = this.#description.paths[path]?.[method.toLowerCase()];
    if (!operation) throw new Error(`GitHub's description has no ${method} ${path}`);
    const response = operation.responses[status];
    if (!response && status < 400)
      throw new Error(`GitHub's description has no ${status} for ${method} ${path}`);
    const pointer = response
      ? this.#schemaPointer(method, path, status, response.$ref)
      : '/components/schemas/basic-error';
    if (pointer === undefined) return body === undefined ? [] : ['a body where there must be none'];
    const validate = this.#compile(pointer);
    const valid = validate(body);
    return valid
      ? []
      : (validate.errors ?? []).map((error) => `${error.instancePath} ${error.message}`);
  }

  #schemaPointer(
    method: string,
    path: string,
    status: number,
    ref: string | undefined,
  ): string | undefined {
    const base = ref
      ? ref.slice(1)
      : `/paths/${path.replaceAll('/', '~1')}/${method.toLowerCase()}/responses/${status}`;
    const name = ref?.split('/').at(-1) ?? '';
    const response = ref
      ? this.#description.components.responses[name]
      : this.#description.paths[path]?.[method.toLowerCase()]?.responses[status];
    return response?.content?.['application/json']?.schema
      ? `${base}/content/application~1json/schema`
      : undefined;
  }

  #compile(pointer: string): ValidateFunction {
    const known = this.#compiled.get(pointer);
    if (known) return known;
    const compiled = this.#ajv.compile({
      $ref: `github#${pointer.replaceAll('{', '%7B').replaceAll('}', '%7D')}`,
    });
    this.#compiled.set(pointer, compiled);
    return compiled;
  }
}

/** OpenAPI 3.0 has `nullable: true` where JSON Schema has the type `null`. */
function nullableToJsonSchema(_key: string, value: unknown): unknown {
  if (
    typeof value !== 'object' ||
    value === null ||
    (value as { nullable?: unknown }).nullable !== true
  )
    return value;
  const { nullable: _nullable, ...schema } = value as Record<string, unknown>;
  return { anyOf: [schema, { type: 'null' }] };
}
