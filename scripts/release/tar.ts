// Reproducible archives: sorted entries, one time for all of them, no user names.

/** An entry of an archive. A folder has no content. */
export interface Entry {
  readonly path: string
  readonly content?: Uint8Array
  /** Permissions. Default: 0644, and 0755 for folders. */
  readonly mode?: number
  /** User and group id. Default: 0. */
  readonly owner?: number
}

const block = 512

const octal = (value: number, length: number): string => `${value.toString(8).padStart(length - 1, "0")}\0`

/** Splits a path of more than 100 bytes at a slash into prefix and name. */
const splitPath = (path: string): readonly [prefix: string, name: string] => {
  if (Buffer.byteLength(path) <= 100) return ["", path]
  for (let slash = path.indexOf("/"); slash >= 0; slash = path.indexOf("/", slash + 1)) {
    const parts = [path.slice(0, slash), path.slice(slash + 1)] as const
    if (Buffer.byteLength(parts[0]) <= 155 && Buffer.byteLength(parts[1]) <= 100) return parts
  }
  throw new Error(`${path} is too long a path for an archive`)
}

const header = ({ content, mode, owner = 0, path }: Entry, time: number): Buffer => {
  const folder = content === undefined
  const [prefix, name] = splitPath(folder ? `${path}/` : path)
  const bytes = Buffer.alloc(block)
  const put = (text: string, at: number) => bytes.write(text, at)
  put(name, 0)
  put(octal(mode ?? (folder ? 0o755 : 0o644), 8), 100)
  put(octal(owner, 8), 108)
  put(octal(owner, 8), 116)
  put(octal(content?.length ?? 0, 12), 124)
  put(octal(time, 12), 136)
  put(" ".repeat(8), 148)
  put(folder ? "5" : "0", 156)
  put("ustar\u000000", 257)
  put(prefix, 345)
  put(`${octal(bytes.reduce((sum, byte) => sum + byte, 0), 7)} `, 148)
  return bytes
}

const compare = (a: Entry, b: Entry): number => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path))

/** A tar archive (ustar). `time` of all entries is in seconds since 1970. */
export const tar = (entries: ReadonlyArray<Entry>, time: number): Buffer => {
  const parts: Array<Uint8Array> = []
  for (const entry of entries.toSorted(compare)) {
    parts.push(header(entry, time))
    if (entry.content === undefined) continue
    parts.push(entry.content, Buffer.alloc((block - entry.content.length % block) % block))
  }
  return Buffer.concat([...parts, Buffer.alloc(2 * block)])
}
