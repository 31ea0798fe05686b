/**
 * The running build. The bundler includes the package's manifest and defines `GATEWAY_BUILD` (`scripts/bundle`); the sources know
 * only their version.
 */
import manifest from "../../../package.json" with { type: "json" }

/** The version of the gateway's package. */
export const currentVersion: string = manifest.version

/** The file that has the version. */
export const versionSource = "package.json"

/** The form of the build: the sources, the bundle of `scripts/start`, the npm package, or one executable. */
type BuildForm = "source" | "bundle" | "package" | "executable"

export interface BuildInfo {
  readonly form: BuildForm
  /** The commit of the sources: 12 hex digits, followed by `-dirty` if they had changes; null if it is unknown. */
  readonly commit: string | null
  /** The date of the commit as `YYYY-MM-DD`; null without a commit. */
  readonly date: string | null
  /** Path of the assets file, relative to the running module; null if there is no such file. */
  readonly assets: string | null
}

declare const GATEWAY_BUILD: BuildInfo | undefined

export const buildInfo: BuildInfo = typeof GATEWAY_BUILD === "undefined"
  ? { form: "source", commit: null, date: null, assets: null }
  : GATEWAY_BUILD

/** The version of Node, without a leading `v`, and the platform such as `linux-x64`. */
export const runtime = {
  node: process.versions.node,
  platform: `${process.platform}-${process.arch}`
} as const
