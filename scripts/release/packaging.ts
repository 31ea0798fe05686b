// The texts of `packaging`, with what a release knows put where they have @NAMES@, and the chart as an archive.
import { readdirSync, readFileSync } from "node:fs"
import path from "node:path"
import { promisify } from "node:util"
import { gzip } from "node:zlib"
import { manifest, root } from "./facts.ts"
import { type Entry, tar } from "./tar.ts"

/** What is put into the texts. */
export interface Stamps {
  readonly VERSION: string
  /** Where the npm package is. */
  readonly URL: string
  /** The npm package's checksum. */
  readonly SHA256: string
  /** The image's name, without a tag. */
  readonly IMAGE: string
}

/** Stamps a text. Throws where it names a stamp that there is none of. */
export const stamp = (text: string, stamps: Stamps): string =>
  text.replaceAll(/@([A-Z][A-Z0-9]+)@/g, (whole, name: string) => {
    if (!Object.hasOwn(stamps, name)) throw new Error(`there is no stamp ${whole}`)
    return stamps[name as keyof Stamps]
  })

const folder = path.join(root, "packaging")

/** The texts by their path below `packaging`, as they stand in the repository. */
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

/** The chart among stamped texts, as helm takes it. */
export const chartArchive = (texts: ReadonlyMap<string, string>, time: number): Promise<Buffer> => {
  const entries = [...texts].flatMap(([name, text]): Array<Entry> =>
    name.startsWith(chart)
      ? [{ path: `${manifest.name}/${name.slice(chart.length)}`, content: Buffer.from(text) }]
      : []
  )
  return promisify(gzip)(tar(entries, time), { level: 9 })
}
