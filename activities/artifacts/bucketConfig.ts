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
}
