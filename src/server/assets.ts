/**
 * Files that come with the gateway beside its code: scripts of the pages it serves, and the notices of the packages in it.
 * Most are compressed. A build has them in one file, read at the first use and kept: what is then done to that file does
 * not matter to a gateway that runs.
 *
 * The file: a line of JSON, `{name: length}` in order, then the contents one after another.
 */
import * as Effect from "effect/Effect"
import { readFileSync } from "node:fs"
import { getRawAsset } from "node:sea"
import { buildInfo } from "../admin/system/build.ts"

/** The assets by name. */
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

/** The assets of a build. Throws where the file is missing, and in the sources, which have none. */
export const builtAssets = (): Assets => {
  if (unpacked === undefined) {
    if (buildInfo.form === "executable") unpacked = unpack(new Uint8Array(getRawAsset("assets")))
    else if (buildInfo.assets !== null) unpacked = unpack(readFileSync(new URL(buildInfo.assets, import.meta.url)))
    else throw new Error("the sources have no built assets")
  }
  return unpacked
}

/** The same script as the build's makes what the sources need, when it is first asked for. */
const script = (): Promise<{
  readonly makeAssets: () => Promise<Assets>
  readonly makeNotices: () => Promise<Uint8Array>
}> => import(new URL("../../scripts/bundle/assets.ts", import.meta.url).href)

let made: Promise<Assets> | undefined

const madeAssets = (): Promise<Assets> => made ??= script().then(({ makeAssets }) => makeAssets())

/** The assets, whatever runs. */
export const assets: Effect.Effect<Assets> = Effect.suspend(() =>
  buildInfo.form === "source" ? Effect.promise(madeAssets) : Effect.sync(builtAssets)
)

/** The notices of the packages in the gateway, as text. */
export const notices: Effect.Effect<string> = Effect.suspend(() =>
  buildInfo.form === "source"
    ? Effect.promise(async () => (await script()).makeNotices())
    : Effect.sync(() => builtAssets().get("THIRD_PARTY_LICENSES.txt") ?? new Uint8Array())
).pipe(Effect.map((bytes) => new TextDecoder().decode(bytes)))
