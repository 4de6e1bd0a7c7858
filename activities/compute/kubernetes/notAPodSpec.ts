/** Error of a pod with parts of the wrong type, which cannot be checked. */
export const NOT_A_POD_SPEC =
  "pod: does not match Kubernetes' PodSpec; check for fields of the wrong type (list, object or string) and for empty items of lists";
