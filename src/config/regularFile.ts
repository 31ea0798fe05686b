/**
 * Reads files that the configuration, the environment or an operator names.
 *
 * The one thing to know: a path may name a pipe, which may never have a writer, or a device, which may never end. Only regular files are
 * read, up to a bound, by the system's threads and not in the event loop's time.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { constants } from "node:fs"
import { open, stat } from "node:fs/promises"
import { buffer } from "node:stream/consumers"

/** The file cannot be read. The message names its path. */
export class UnreadableFile extends Schema.TaggedError<UnreadableFile>()("UnreadableFile", {
  /** `missing`: there is no file. `irregular`: it is a pipe, a device or a socket. `long`: it is longer than the bound. */
  kind: Schema.Literals(["missing", "folder", "irregular", "long", "other"]),
  message: Schema.String
}) {}

/** Bytes of one read. */
const pieceSize = 1024 * 1024

/** A read of a pipe or device that has taken the file's place does not wait. Windows has no such flag, and no such files. */
const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)

const unreadable = (kind: UnreadableFile["kind"], path: string, rule: string) =>
  new UnreadableFile({ kind, message: `${path}${rule}` })

const notRegular = (path: string, isFolder: boolean) =>
  isFolder
    ? unreadable("folder", path, " is a folder, not a file")
    : unreadable("irregular", path, " is not a regular file")

const tooLong = (path: string, most: number) => unreadable("long", path, ` is longer than ${most} bytes`)

const readWithin = async (path: string, most: number): Promise<Buffer> => {
  // To open a pipe or a device may wait, or act on the device.
  const there = await stat(path)
  if (!there.isFile()) throw notRegular(path, there.isDirectory())
  if (there.size > most) throw tooLong(path, most)
  const file = await open(path, flags)
  try {
    if (!(await file.stat()).isFile()) throw notRegular(path, false)
    // `end` is the place of the last byte that is read: one more than may be there.
    const stream = file.createReadStream({ autoClose: false, end: most, highWaterMark: pieceSize })
    const bytes = await buffer(stream)
    if (bytes.length > most) throw tooLong(path, most)
    return bytes
  } finally {
    await file.close()
  }
}

const readFromDisk = (path: string, most: number): Effect.Effect<Buffer, UnreadableFile> =>
  Effect.tryPromise({
    try: () => readWithin(path, most),
    catch: (error) => {
      if (error instanceof UnreadableFile) return error
      const code = Predicate.hasProperty(error, "code") ? String(error.code) : "unknown"
      return code === "ENOENT" || code === "ENOTDIR"
        ? unreadable("missing", path, ": there is no such file")
        : unreadable("other", path, ` cannot be read (${code})`)
    }
  })

/** Reads files from the disk. A disk in memory brings a reader of its own. */
export const CurrentFileReader = Context.Reference("model-gateway/config/FileReader", {
  defaultValue: () => readFromDisk
})

/** Reads a regular file of at most `most` bytes. Fails with the reason, for which a link counts as the file that it leads to. */
export const readRegularFile = (path: string, most: number): Effect.Effect<Buffer, UnreadableFile> =>
  Effect.flatMap(CurrentFileReader, (read) => read(path, most))

/** What differs once a file has changed; the same for each file that cannot be looked at. */
export const fileStamp = (path: string): Effect.Effect<string> =>
  Effect.match(Effect.tryPromise(() => stat(path)), {
    onFailure: () => "",
    onSuccess: ({ ino, mtimeMs, size }) => `${mtimeMs} ${size} ${ino}`
  })
