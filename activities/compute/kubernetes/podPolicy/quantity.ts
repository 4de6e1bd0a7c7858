/** Quantities of Kubernetes. Pure. */

const FACTORS: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};
const QUANTITY = /^([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)([A-Za-z]{0,2})$/;

/**
 * Returns the value of a quantity (`500m`: 0.5, `1.5Gi`: 1610612736), or `undefined` if it is
 * invalid. client-node's quantityToScalar is not used, because it throws for fractions and returns
 * NaN for `xm`, which would count as more than nothing.
 * https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
 * @param quantity - any JSON value that the author of a pod wrote
 */
export function parseQuantity(quantity: unknown): number | undefined {
  // Without quotes, YAML parses `2` as a number, which the API server accepts.
  const [, amount, suffix = ''] =
    (typeof quantity === 'string' || typeof quantity === 'number'
      ? QUANTITY.exec(String(quantity))
      : null) ?? [];
  const factor = Object.hasOwn(FACTORS, suffix) ? FACTORS[suffix] : undefined;
  return amount === undefined || factor === undefined ? undefined : Number(amount) * factor;
}
