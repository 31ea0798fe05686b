/**
 * Backups of a gateway on this machine, and their restoration: the configuration with its secrets, the data folder, and the store
 * key. A backup is a folder of mode 0700 with files of mode 0600. `backup.json` is written last, so that a backup without it is
 * incomplete.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { createHash } from "node:crypto"
import { currentVersion } from "../../admin/system/build.ts"
import { codeOf, makeConfigFile } from "../../config/ConfigFile.ts"
import { Environment, namedFolder } from "../../config/Environment.ts"
import { isJsonObject, parseConfig, stringifyConfig } from "../../config/json.ts"
import { parseVariable } from "../../config/sources.ts"
import { formatTimestamp } from "../../domain/time.ts"

export class BackupFailed extends Schema.TaggedError<BackupFailed>()("BackupFailed", { message: Schema.String }) {}

const failed = (message: string) => Effect.fail(new BackupFailed({ message }))

/** The format of backups. A restoration refuses another one. */
const format = 1

const manifestName = "backup.json"

const Manifest = Schema.fromJsonString(Schema.Struct({
  format: Schema.Int,
  /** The version of the gateway that wrote the backup. */
  version: Schema.String,
  created_at: Schema.String,
  files: Schema.Array(Schema.Struct({ path: Schema.String, sha256: Schema.String }))
}))

/** The files of a backup, in its folder; those of the data folder are below `data`. */
const names = {
  config: "config.json",
  jwtSecret: "jwt-secret",
  endedLogins: "ended-logins",
  usage: "usage.sqlite",
  storeKey: "store-key",
  data: "data"
} as const

/** Files of a moment: locks, unfinished writes, and what SQLite keeps beside a database. */
const isTransient = (name: string): boolean => /(?:\.lock|\.tmp|-wal|-shm|-journal)$/.test(name)

const unusable = (error: PlatformError): BackupFailed => {
  const { reason } = error
  const place = reason._tag === "BadArgument" ? reason.method : reason.pathOrDescriptor ?? reason.method
  return new BackupFailed({ message: `${place} cannot be read or written (${codeOf(error)})` })
}

const beginningOfDatabase = "SQLite format 3\0"

/** The absolute path of the usage history that a configuration names; `undefined` for a file in the data folder. */
const usageFile = Effect.fnUntraced(function*(source: string, text: string | undefined) {
  const { isAbsolute } = yield* Path.Path
  const raw = text === undefined ? {} : yield* parseConfig(source, text)
  const usage = raw["usage"]
  const file = isJsonObject(usage) ? usage["file"] : undefined
  return typeof file === "string" && isAbsolute(file.trim()) ? file.trim() : undefined
})

/** Where the gateway of this environment keeps its files. */
const places = Effect.gen(function*() {
  const { configPath } = yield* Environment
  const { resolve } = yield* Path.Path
  const config = resolve(configPath)
  return {
    config,
    data: yield* namedFolder,
    besides: [[names.jwtSecret, `${config}.jwt-secret`], [names.endedLogins, `${config}.ended-logins`]] as const
  }
})

/** The text of the configuration that the gateway of this environment starts with. */
const configText = Effect.fnUntraced(function*(path: string) {
  const { configJson, configWriteback } = yield* Environment
  const file = yield* (yield* makeConfigFile(path)).read
  if (configJson === undefined || (configWriteback && Option.isSome(file))) {
    return Option.getOrUndefined(Option.map(file, ({ text }) => text))
  }
  return yield* stringifyConfig(yield* parseVariable(Redacted.value(configJson)), "indented")
})

const isDatabase = Effect.fnUntraced(function*(path: string) {
  const fs = yield* FileSystem.FileSystem
  const handle = yield* fs.open(path, { flag: "r" })
  const beginning = yield* handle.readAlloc(beginningOfDatabase.length)
  return Option.match(beginning, {
    onNone: () => false,
    onSome: (bytes) => Buffer.from(bytes).toString("latin1") === beginningOfDatabase
  })
}, Effect.scoped)

/** Milliseconds that a copy waits for another process that writes the database. */
const databasePatience = 30_000

/** SQLite's codes of a file that it cannot read: `SQLITE_CORRUPT` and `SQLITE_NOTADB`. */
const damaged: ReadonlySet<unknown> = new Set([11, 26])

const isDamaged = (error: unknown): boolean =>
  Predicate.hasProperty(error, "errcode") && typeof error.errcode === "number" && damaged.has(error.errcode & 0xff)

/** Copies a database as it is at one moment, even while a gateway writes it. Returns false for a damaged one. */
const copyDatabase = (from: string, to: string) =>
  Effect.tryPromise({
    try: async () => {
      const { DatabaseSync } = await import("node:sqlite")
      const db = new DatabaseSync(from, { timeout: databasePatience })
      try {
        db.prepare("VACUUM INTO ?").run(to)
        return true
      } catch (error) {
        if (isDamaged(error)) return false
        throw error
      } finally {
        db.close()
      }
    },
    catch: (error) =>
      new BackupFailed({
        message: `${from} cannot be copied (${error instanceof Error ? error.message : String(error)})`
      })
  })

/** Copies a file into a backup, readable by its owner only. */
const copyInto = Effect.fnUntraced(function*(from: string, to: string) {
  const fs = yield* FileSystem.FileSystem
  const { dirname } = yield* Path.Path
  yield* fs.makeDirectory(dirname(to), { recursive: true, mode: 0o700 })
  // SQLite copies into an empty file, which keeps its mode.
  yield* fs.writeFileString(to, "", { flag: "wx", mode: 0o600 })
  // The gateway keeps a damaged database beside the new one.
  const isCopied = (yield* isDatabase(from)) && (yield* copyDatabase(from, to))
  if (!isCopied) yield* fs.copyFile(from, to)
  yield* fs.chmod(to, 0o600)
})

const digestOf = Effect.fnUntraced(function*(path: string) {
  const fs = yield* FileSystem.FileSystem
  const sum = createHash("sha256")
  yield* Stream.runForEach(fs.stream(path), (bytes) => Effect.sync(() => sum.update(bytes)))
  return sum.digest("hex")
})

/** The regular files below a folder, as relative paths with slashes; empty if there is no such folder. */
const filesBelow = Effect.fnUntraced(function*(folder: string) {
  const fs = yield* FileSystem.FileSystem
  const { join, sep } = yield* Path.Path
  if (!(yield* fs.exists(folder))) return []
  const found = (yield* fs.readDirectory(folder, { recursive: true })).filter((name) => !isTransient(name))
  const files = yield* Effect.filter(
    found,
    (name) => Effect.map(fs.stat(join(folder, name)), ({ type }) => type === "File")
  )
  return files.map((name) => name.split(sep).join("/")).sort()
})

/** The files of the data folder without those of the configuration, which may be in the same folder. */
const dataFiles = Effect.fnUntraced(function*(data: string, config: string) {
  const { join } = yield* Path.Path
  return (yield* filesBelow(data)).filter((name) => {
    const path = join(data, name)
    return path !== config && !path.startsWith(`${config}.`)
  })
})

/**
 * Backs up the gateway of this environment into `folder`, which must be empty or missing. Returns the number of files. Removes an
 * incomplete backup.
 */
export const backUp = Effect.fnUntraced(function*(folder: string) {
  const fs = yield* FileSystem.FileSystem
  const { join, relative, resolve } = yield* Path.Path
  const { besides, config, data } = yield* places
  const { storeKey } = yield* Environment
  const to = resolve(folder)
  if (!relative(data, to).startsWith("..")) {
    return yield* failed(`${to} is in the data folder: name a folder outside of it`)
  }
  const isThere = yield* fs.exists(to)
  if (isThere && (yield* fs.readDirectory(to)).length > 0) return yield* failed(`${to} is not empty: name a new folder`)
  const text = yield* configText(config)
  const inData = yield* dataFiles(data, config)
  const usage = yield* usageFile(config, text)
  const copies: ReadonlyArray<readonly [name: string, from: string]> = [
    ...inData.map((name) => [`${names.data}/${name}`, join(data, name)] as const),
    ...(usage === undefined ? [] : [[names.usage, usage] as const]),
    ...besides
  ]
  const existing = yield* Effect.filter(copies, ([, from]) => fs.exists(from))
  if (text === undefined && existing.length === 0) {
    return yield* failed(`there is nothing to back up: neither ${config} nor ${data} exists`)
  }
  const written = Effect.gen(function*() {
    for (const [name, from] of existing) yield* copyInto(from, join(to, name))
    const texts = [
      [names.config, text],
      [names.storeKey, storeKey === undefined ? undefined : `${Redacted.value(storeKey)}\n`]
    ] as const
    for (const [name, content] of texts) {
      if (content !== undefined) yield* fs.writeFileString(join(to, name), content, { flag: "wx", mode: 0o600 })
    }
    const files: Array<{ readonly path: string; readonly sha256: string }> = []
    for (const path of yield* filesBelow(to)) files.push({ path, sha256: yield* digestOf(join(to, path)) })
    const created_at = formatTimestamp(yield* Clock.currentTimeMillis)
    const manifest = yield* Effect.orDie(
      Schema.encodeEffect(Manifest)({ format, version: currentVersion, created_at, files })
    )
    yield* fs.writeFileString(join(to, manifestName), `${manifest}\n`, { flag: "wx", mode: 0o600 })
    return { folder: to, files: files.length, hasStoreKey: storeKey !== undefined }
  })
  const removeAll = Effect.gen(function*() {
    const made = isThere ? (yield* fs.readDirectory(to)).map((name) => join(to, name)) : [to]
    for (const path of made) yield* fs.remove(path, { recursive: true })
  })
  yield* fs.makeDirectory(to, { recursive: true, mode: 0o700 })
  yield* fs.chmod(to, 0o700)
  return yield* Effect.onError(written, () => Effect.ignore(removeAll))
}, Effect.catchTag("PlatformError", (error) => Effect.fail(unusable(error))))

/** Refuses a path of a backup that a link leads elsewhere: it would be read from there. */
const refuseLinks = Effect.fnUntraced(function*(folder: string, name: string) {
  const fs = yield* FileSystem.FileSystem
  const { join } = yield* Path.Path
  const path = join(folder, name)
  if (!(yield* fs.exists(path)) || (yield* fs.realPath(path)) === join(yield* fs.realPath(folder), name)) return
  return yield* failed(`${path} is a link: a backup has files only`)
})

/** The manifest of a complete and undamaged backup. */
const checkedManifest = Effect.fnUntraced(function*(folder: string) {
  const fs = yield* FileSystem.FileSystem
  const { join } = yield* Path.Path
  const path = join(folder, manifestName)
  yield* refuseLinks(folder, manifestName)
  if (!(yield* fs.exists(path))) return yield* failed(`${folder} is no complete backup: it has no ${manifestName}`)
  const manifest = yield* Schema.decodeEffect(Manifest)(yield* fs.readFileString(path)).pipe(
    Effect.catch(() => failed(`${path} is damaged`))
  )
  if (manifest.format !== format) {
    return yield* failed(
      `${folder} has format ${manifest.format}, and this version reads format ${format}: restore it with ${manifest.version}`
    )
  }
  for (const { path: name, sha256 } of manifest.files) {
    if (name.split(/[/\\]/).includes("..")) return yield* failed(`${path} is damaged: it names ${name}`)
    yield* refuseLinks(folder, name)
    const digest = yield* Effect.orElseSucceed(digestOf(join(folder, name)), () => undefined)
    if (digest !== sha256) return yield* failed(`${join(folder, name)} is damaged or missing`)
  }
  return manifest
})

/** Puts a file of a backup in its place. A database loses what SQLite kept beside the one before. */
const putInPlace = Effect.fnUntraced(function*(from: string, to: string) {
  const fs = yield* FileSystem.FileSystem
  const { dirname } = yield* Path.Path
  yield* fs.makeDirectory(dirname(to), { recursive: true, mode: 0o700 })
  const unfinished = `${to}.tmp`
  yield* fs.remove(unfinished, { force: true })
  yield* fs.writeFileString(unfinished, "", { flag: "wx", mode: 0o600 })
  yield* fs.copyFile(from, unfinished)
  yield* fs.chmod(unfinished, 0o600)
  if (yield* isDatabase(unfinished)) {
    for (const suffix of ["-wal", "-shm", "-journal"]) yield* fs.remove(`${to}${suffix}`, { force: true })
  }
  yield* fs.rename(unfinished, to)
})

/**
 * Refuses to write the history to a path that only the backup's own configuration names. `force` permits it, for a database and in a
 * folder that exists.
 */
const checkUsage = Effect.fnUntraced(function*(from: string, to: string, config: string, force: boolean) {
  const fs = yield* FileSystem.FileSystem
  const { dirname } = yield* Path.Path
  if (!(yield* isDatabase(from))) return yield* failed(`${from} is no SQLite database, so it is not the usage history`)
  const own = yield* usageFile(config, yield* configText(config))
  if (own === to) return
  if (!force) {
    return yield* failed(
      `${to} is where the backup's configuration has its usage history, and yours does not: restore with --force to write it there`
    )
  }
  if (!(yield* fs.exists(dirname(to)))) {
    return yield* failed(`${dirname(to)} does not exist: make the folder of the usage history`)
  }
})

/**
 * Restores a backup to where the configuration and the data folder of this environment are. Without `force` it refuses to overwrite
 * existing files; with it, files of the backup replace those in place, and other files stay. Returns the paths that it wrote, in order.
 */
export const restore = Effect.fnUntraced(function*(folder: string, { force }: { readonly force: boolean }) {
  const fs = yield* FileSystem.FileSystem
  const { join, resolve } = yield* Path.Path
  const from = resolve(folder)
  const { besides, config, data } = yield* places
  const { configJson } = yield* Environment
  const { created_at, files, version } = yield* checkedManifest(from)
  const has = (name: string) => files.some(({ path }) => path === name)
  const text = has(names.config) ? yield* fs.readFileString(join(from, names.config)) : undefined
  const usage = has(names.usage) ? yield* usageFile(join(from, names.config), text) : undefined
  if (usage !== undefined) yield* checkUsage(join(from, names.usage), usage, config, force)
  const targets = new Map<string, string>([
    ...besides,
    ...(usage === undefined ? [] : [[names.usage, usage] as const]),
    ...files.flatMap(({ path }) =>
      path.startsWith(`${names.data}/`) ? [[path, join(data, path.slice(names.data.length + 1))] as const] : []
    )
  ])
  // The data folder may be that of the configuration, whose files a backup has beside its data.
  for (const [name, to] of targets) {
    if (name.startsWith(`${names.data}/`) && (to === config || to.startsWith(`${config}.`))) {
      return yield* failed(
        `${join(from, name)} would replace ${to}, which is a file of the configuration and not of the data`
      )
    }
  }
  if (!force) {
    const taken = (yield* fs.exists(config))
      ? config
      : (yield* dataFiles(data, config)).length > 0
      ? data
      : (yield* Effect.filter([...targets.values()], (path) => fs.exists(path)))[0]
    if (taken !== undefined) {
      return yield* failed(`${taken} is in use: stop the gateway and restore with --force, which replaces it`)
    }
  }
  const written: Array<string> = []
  for (const [name, to] of targets) {
    if (!has(name)) continue
    yield* putInPlace(join(from, name), to)
    written.push(to)
  }
  // A gateway may watch the configuration, so it comes last.
  if (text !== undefined) {
    yield* (yield* makeConfigFile(config)).replace(text)
    written.push(config)
  }
  return {
    version,
    created_at,
    written,
    storeKey: has(names.storeKey) ? join(from, names.storeKey) : undefined,
    isConfigUnused: configJson !== undefined
  }
}, Effect.catchTag("PlatformError", (error) => Effect.fail(unusable(error))))
