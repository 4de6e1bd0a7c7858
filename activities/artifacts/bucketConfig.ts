/** Files with the access key of a bucket, in the directory `BucketConfig.keyDirectory`. */
export const BUCKET_KEY_FILES = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'] as const;

/** An S3 bucket and its access settings. Contains no secrets. */
export interface BucketConfig {
  readonly bucket: string;
  /** Prefix of every key in the bucket, followed by a slash. @default none */
  readonly folder?: string;
  /** Base URL of the server. @default Amazon's URL of the region */
  readonly endpoint?: string;
  readonly region: string;
  /** Whether the bucket is in the path of the URL instead of the host name. */
  readonly pathStyle: boolean;
  /**
   * Directory with the files {@link BUCKET_KEY_FILES}.
   * @default the sources of the SDK: `AWS_…` variables, a profile, the cloud identity of the pod
   */
  readonly keyDirectory?: string;
}
