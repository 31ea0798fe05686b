/**
 * The version of the running gateway: that of its package. A bundler takes it in, so that a build has the one it was made of.
 */
import manifest from "../../../package.json" with { type: "json" }

export const currentVersion: string = manifest.version

/** Where the version is written. */
export const versionSource = "package.json"
