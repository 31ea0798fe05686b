/**
 * Files that ship with the gateway: scripts of its pages and the notices of its packages, mostly compressed. A build has
 * them in one file, which is read once, so that a running gateway does not depend on it later.
 *
 * Format of the file: a line of JSON, `{name: length}` in order, then the contents in the same order.
 */
import * as Effect from "effect/Effect"
import { readFileSync } from "node:fs"
import { getRawAsset } from "node:sea"
import { buildInfo } from "../admin/system/build.ts"

export type Assets = ReadonlyMap<string, Uint8Array>

const lineFeed = 10

const unpack = (bytes: Uint8Array): Assets => {
  const start = bytes.indexOf(lineFeed) + 1
  const lengths = JSON.parse(new TextDecoder().decode(bytes.subarray(0, start))) as Readonly<Record<string, number>>
  const assets = new Map<string, Uint8Array>()
  let offset = start
  for (const [name, length] of Object.entries(lengths)) {
    assets.set(name, bytes.subarray(offset, offset + length))
    offset += length
  }
  return assets
}

let unpacked: Assets | undefined

/** The assets of a build. Throws if the file is missing, and in a source tree. */
export const builtAssets = (): Assets => {
  if (unpacked === undefined) {
    if (buildInfo.form === "executable") unpacked = unpack(new Uint8Array(getRawAsset("assets")))
    else if (buildInfo.assets !== null) unpacked = unpack(readFileSync(new URL(buildInfo.assets, import.meta.url)))
    else throw new Error("the sources have no built assets")
  }
  return unpacked
}

/** The build script, which also makes the assets of a source tree on first use. */
const script = (): Promise<{
  readonly makeAssets: () => Promise<Assets>
  readonly makeNotices: () => Promise<Uint8Array>
}> => import(new URL("../../scripts/bundle/assets.ts", import.meta.url).href)

let made: Promise<Assets> | undefined

const madeAssets = (): Promise<Assets> => made ??= script().then(({ makeAssets }) => makeAssets())

/** The assets, of a build or a source tree. */
export const assets: Effect.Effect<Assets> = Effect.suspend(() =>
  buildInfo.form === "source" ? Effect.promise(madeAssets) : Effect.sync(builtAssets)
)

/** The license notices of the packages in the gateway. */
export const notices: Effect.Effect<string> = Effect.suspend(() =>
  buildInfo.form === "source"
    ? Effect.promise(async () => (await script()).makeNotices())
    : Effect.sync(() => builtAssets().get("THIRD_PARTY_LICENSES.txt") ?? new Uint8Array())
).pipe(Effect.map((bytes) => new TextDecoder().decode(bytes)))
