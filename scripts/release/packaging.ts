// The files of `packaging` with their @STAMPS@ replaced, and the chart as an archive.
import { readdirSync, readFileSync } from "node:fs"
import path from "node:path"
import { promisify } from "node:util"
import { gzip } from "node:zlib"
import { manifest, root } from "./facts.ts"
import { type Entry, tar } from "./tar.ts"

/** The values of the stamps. */
export interface Stamps {
  readonly VERSION: string
  /** Address of the npm package. */
  readonly URL: string
  /** SHA-256 of the npm package. */
  readonly SHA256: string
  /** Name of the image, without a tag. */
  readonly IMAGE: string
}

/** Replaces the stamps of a text. Throws on an unknown stamp. */
export const stamp = (text: string, stamps: Stamps): string =>
  text.replaceAll(/@([A-Z][A-Z0-9]+)@/g, (whole, name: string) => {
    if (!Object.hasOwn(stamps, name)) throw new Error(`unknown stamp ${whole}`)
    return stamps[name as keyof Stamps]
  })

const folder = path.join(root, "packaging")

/** The texts of the repository by their paths below `packaging`. */
export const readTexts = (): ReadonlyMap<string, string> =>
  new Map(
    readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
      .map(({ name, parentPath }) => path.join(parentPath, name))
      .map((file) => [path.relative(folder, file).replaceAll(path.sep, "/"), readFileSync(file, "utf8")] as const)
      .sort(([a], [b]) => a < b ? -1 : 1)
  )

const chart = `helm/${manifest.name}/`

/** The stamped texts. */
export const stampTexts = (stamps: Stamps): ReadonlyMap<string, string> =>
  new Map([...readTexts()].map(([name, text]) => [name, stamp(text, stamps)]))

/** The chart among the stamped texts, as Helm reads it. */
export const chartArchive = (texts: ReadonlyMap<string, string>, time: number): Promise<Buffer> => {
  const entries = [...texts].flatMap(([name, text]): Array<Entry> =>
    name.startsWith(chart)
      ? [{ path: `${manifest.name}/${name.slice(chart.length)}`, content: Buffer.from(text) }]
      : []
  )
  return promisify(gzip)(tar(entries, time), { level: 9 })
}
