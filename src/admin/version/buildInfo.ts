/**
 * What is known of the running build. The bundler writes it in (`scripts/bundle`); the sources know only that they are sources.
 */

/** How the gateway is run: from its sources, from the bundle of `scripts/start`, as the npm package, as one executable. */
export type BuildForm = "source" | "bundle" | "package" | "executable"

export interface BuildInfo {
  readonly form: BuildForm
  /** The commit that a release was made of: 12 hex digits, `-dirty` behind them where the tree had changes. Else null. */
  readonly commit: string | null
  /** The commit's date as `YYYY-MM-DD`; null where the commit is not known. */
  readonly date: string | null
  /** Where the file of assets is, relative to the module that runs; null where there is none beside it. */
  readonly assets: string | null
}

declare const GATEWAY_BUILD: BuildInfo | undefined

export const buildInfo: BuildInfo = typeof GATEWAY_BUILD === "undefined"
  ? { form: "source", commit: null, date: null, assets: null }
  : GATEWAY_BUILD

/** The Node that runs this, without a `v` before it, and the machine's kind as `linux-x64`. */
export const runtime = {
  node: process.versions.node,
  platform: `${process.platform}-${process.arch}`
} as const
