/**
 * What `--version` says of a build.
 */
import { type BuildInfo, buildInfo, currentVersion, runtime } from "../../admin/system/build.ts"

/** The version with what it was made of and what it runs on. */
export const versionLine = (
  version: string = currentVersion,
  { commit, date, form }: BuildInfo = buildInfo,
  { node, platform }: typeof runtime = runtime
): string =>
  `${version} (commit ${commit ?? "unknown"}, built ${date ?? "unknown"}, node v${node}, ${platform}, ${form})`
