/** Files with a bucket's key, in the folder that `BucketConfig.keyDirectory` names. */
export const BUCKET_KEY_FILES = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'] as const;

/** A bucket of a server that speaks S3, and how to get at it. Free of secrets. */
export interface BucketConfig {
  readonly bucket: string;
  /** Of the bucket, in which everything is: before every key, with a slash between. @default none */
  readonly folder?: string;
  /** Base URL of the server. @default Amazon's for the region */
  readonly endpoint?: string;
  readonly region: string;
  /** The bucket is named in the URL's path, and not in the host's name. */
  readonly pathStyle: boolean;
  /**
   * Folder with the files {@link BUCKET_KEY_FILES}.
   * @default the SDK's own sources: `AWS_…` variables, a profile, the cloud's identity of the pod
   */
  readonly keyDirectory?: string;
}
