// The assets of the gateway: one file for a build, in memory for a gateway that runs from its sources.
import { readdirSync, readFileSync } from "node:fs"
import path from "node:path"
import { helpAsset } from "../../src/server/documents/helpFiles.ts"
import { buildConsole, cachedConsole } from "../console.ts"
import { buildService, compressHelp, noticesAsset } from "./service.ts"

/**
 * Packs assets into the file that src/server/assets.ts reads. Of the console's files it has the Brotli forms alone; the others are
 * made when the console is first read.
 */
export const packAssets = (assets: ReadonlyMap<string, Uint8Array>): Buffer => {
  const sorted = [...assets].filter(([name]) => !name.endsWith(".gz") && !assets.has(`${name}.br`)).sort(([a], [b]) =>
    a < b ? -1 : 1
  )
  const lengths = Object.fromEntries(sorted.map(([name, bytes]) => [name, bytes.length]))
  return Buffer.concat([Buffer.from(`${JSON.stringify(lengths)}\n`), ...sorted.map(([, bytes]) => bytes)])
}

const readFolder = (folder: string): Array<[string, Uint8Array]> =>
  readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
    .map(({ name, parentPath }) => path.join(parentPath, name))
    .map((file) => [path.relative(folder, file).replaceAll(path.sep, "/"), readFileSync(file)])

/** The assets of a gateway that runs from its sources: the pages of /help, and the console, built on first use. */
export const makeAssets = async (): Promise<ReadonlyMap<string, Uint8Array>> => {
  const help = await compressHelp("", "quick")
  const files = (): ReadonlyMap<string, Uint8Array> =>
    new Map<string, Uint8Array>(readFolder(cachedConsole).map(([name, bytes]) => [`console/${name}`, bytes]))
      .set(helpAsset, help)
  try {
    return files()
  } catch {
    await buildConsole(cachedConsole)
    return files()
  }
}

/** The license notices of the packages that a build of these sources contains. */
export const makeNotices = async (): Promise<Uint8Array> => {
  const { assets } = await buildService("main.ts", { form: "bundle", commit: null, date: null, assets: null }, "quick")
  return assets.get(noticesAsset)!
}
