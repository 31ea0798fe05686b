/** Backups and their restoration, beside an open usage history. */
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Layer } from "effect"
import { createHash } from "node:crypto"
import { DatabaseSync } from "node:sqlite"
import { Environment } from "../../../src/config/Environment.ts"
import { backUp, restore } from "../../../src/server/cli/backup.ts"
import { failing, withVariables } from "../../config/support.ts"

/** The environment of a gateway whose configuration and data are in a folder. */
const within = (folder: string, more: Record<string, string> = {}) =>
  Effect.provide(Layer.provide(
    Environment.layer,
    withVariables({ GATEWAY_CONFIG_PATH: `${folder}/config.json`, GATEWAY_DATA_DIR: `${folder}/data`, ...more })
  ))

const config = `{ "keys": ["secret-key"], "of_a_newer_gateway": 1 }`

/** A gateway's folder, with an open history whose rows are only in the write-ahead log. */
const filled = Effect.gen(function*() {
  const fs = yield* FileSystem.FileSystem
  const folder = yield* fs.makeTempDirectoryScoped()
  yield* fs.makeDirectory(`${folder}/data/more`, { recursive: true })
  const files = {
    "config.json": config,
    "config.json.jwt-secret": "jwt",
    "config.json.lock": "lock",
    "data/more/shared-config.sealed": "sealed"
  }
  for (const [name, text] of Object.entries(files)) yield* fs.writeFileString(`${folder}/${name}`, text)
  const db = yield* Effect.acquireRelease(
    Effect.sync(() => new DatabaseSync(`${folder}/data/usage.sqlite`)),
    (open) => Effect.sync(() => open.close())
  )
  db.exec("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; PRAGMA user_version = 7; CREATE TABLE t (x)")
  db.exec("INSERT INTO t VALUES (1), (2); BEGIN; INSERT INTO t VALUES (3)")
  return { fs, folder }
})

const messageOf = <A, R>(effect: Effect.Effect<A, { readonly message: string }, R>) =>
  Effect.map(Effect.flip(effect), (error) => error.message)

describe("a backup", () => {
  it.effect("is taken while the history is written, and restored with the state of that moment", () =>
    Effect.gen(function*() {
      const { folder, fs } = yield* filled
      const to = `${folder}/backup`
      const made = yield* within(folder, { GATEWAY_STORE_KEY: "a-key-of-the-store" })(backUp(to))
      assert.deepStrictEqual(made, { folder: to, files: 5, hasStoreKey: true })
      const names = (yield* fs.readDirectory(to, { recursive: true })).sort()
      assert.deepStrictEqual(names, [
        "backup.json",
        "config.json",
        "data",
        "data/more",
        "data/more/shared-config.sealed",
        "data/usage.sqlite",
        "jwt-secret",
        "store-key"
      ])
      for (const name of ["", ...names]) {
        const { mode, type } = yield* fs.stat(`${to}/${name}`)
        assert.strictEqual(mode & 0o777, type === "Directory" ? 0o700 : 0o600, name)
      }

      const other = yield* fs.makeTempDirectoryScoped()
      const restored = yield* within(other)(restore(to, { force: false }))
      assert.deepInclude(restored, {
        written: [
          `${other}/config.json.jwt-secret`,
          `${other}/data/more/shared-config.sealed`,
          `${other}/data/usage.sqlite`,
          `${other}/config.json`
        ],
        storeKey: `${to}/store-key`
      })
      assert.strictEqual(yield* fs.readFileString(`${other}/config.json`), config)
      assert.strictEqual(yield* fs.readFileString(`${other}/config.json.jwt-secret`), "jwt")
      assert.strictEqual(yield* fs.readFileString(`${other}/data/more/shared-config.sealed`), "sealed")
      for (const name of ["config.json", "config.json.jwt-secret", "data/usage.sqlite"]) {
        assert.strictEqual((yield* fs.stat(`${other}/${name}`)).mode & 0o777, 0o600, name)
      }
      const db = new DatabaseSync(`${other}/data/usage.sqlite`, { readOnly: true })
      assert.deepStrictEqual(db.prepare("SELECT count(*) AS rows FROM t").get()?.["rows"], 2)
      assert.deepStrictEqual(db.prepare("PRAGMA user_version").get()?.["user_version"], 7)
      db.close()
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)))

  it.effect("is refused where it would mix with other files, and leaves nothing behind when it fails", () =>
    Effect.gen(function*() {
      const { folder, fs } = yield* filled
      const run = (to: string) => within(folder)(messageOf(backUp(to)))
      assert.include(yield* run(`${folder}/data/backup`), "is in the data folder")
      assert.include(yield* run(folder), "is not empty")
      const failure = Effect.provide(run(`${folder}/backup`), failing("open", "EIO"))
      assert.include(yield* failure, "(EIO)")
      assert.isFalse(yield* fs.exists(`${folder}/backup`))
      const empty = yield* fs.makeTempDirectoryScoped()
      assert.include(yield* within(empty)(messageOf(backUp(`${empty}/backup`))), "there is nothing to back up")
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)))

  it.effect("has a damaged database as it is", () =>
    Effect.gen(function*() {
      const { folder, fs } = yield* filled
      const text = `SQLite format 3\0${"x".repeat(1000)}`
      yield* fs.writeFileString(`${folder}/data/usage.sqlite.damaged`, text)
      yield* within(folder)(backUp(`${folder}/backup`))
      assert.strictEqual(yield* fs.readFileString(`${folder}/backup/data/usage.sqlite.damaged`), text)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)))

  it.effect("has the configuration of GATEWAY_CONFIG_JSON, and a history outside of the data folder", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const folder = yield* fs.makeTempDirectoryScoped()
      const usage = `${folder}/elsewhere.sqlite`
      const db = new DatabaseSync(usage)
      db.exec("CREATE TABLE t (x)")
      db.close()
      const variables = { GATEWAY_CONFIG_JSON: JSON.stringify({ keys: ["k"], usage: { file: usage } }) }
      yield* within(folder, variables)(backUp(`${folder}/backup`))
      yield* fs.remove(usage)
      const restored = yield* within(folder, variables)(restore(`${folder}/backup`, { force: false }))
      assert.isTrue(restored.isConfigUnused)
      assert.include(yield* fs.readFileString(`${folder}/config.json`), `"k"`)
      assert.isTrue(yield* fs.exists(usage))
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)))
})

describe("a restoration", () => {
  /** A backup whose configuration has its history at `path`, with `content` as the history. */
  const foreign = Effect.fnUntraced(function*(path: string, content: string | undefined) {
    const fs = yield* FileSystem.FileSystem
    const folder = yield* fs.makeTempDirectoryScoped()
    const usage = `${folder}/a.sqlite`
    const db = new DatabaseSync(usage)
    db.exec("CREATE TABLE t (x)")
    db.close()
    if (content !== undefined) yield* fs.writeFileString(usage, content)
    const config = (file: string) => ({ GATEWAY_CONFIG_JSON: JSON.stringify({ usage: { file } }) })
    yield* within(folder, config(usage))(backUp(`${folder}/backup`))
    const text = (yield* fs.readFileString(`${folder}/backup/config.json`)).replace(usage, path)
    yield* fs.writeFileString(`${folder}/backup/config.json`, text)
    const manifest = yield* fs.readFileString(`${folder}/backup/backup.json`)
    const sum = createHash("sha256").update(text).digest("hex")
    yield* fs.writeFileString(
      `${folder}/backup/backup.json`,
      manifest.replace(/("path":"config\.json","sha256":")[0-9a-f]+/, `$1${sum}`)
    )
    return `${folder}/backup`
  })

  it.effect("writes the history to a path of the backup's own configuration only with force, and only into a folder in place", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const [place, elsewhere] = [yield* fs.makeTempDirectoryScoped(), yield* fs.makeTempDirectoryScoped()]
      const target = `${elsewhere}/there.sqlite`
      const backup = yield* foreign(target, undefined)
      const run = (from: string, force: boolean) => within(place)(restore(from, { force }))
      assert.include(
        yield* messageOf(run(backup, false)),
        `${target} is where the backup's configuration has its usage`
      )
      assert.isFalse(yield* fs.exists(target))
      assert.isFalse(yield* fs.exists(`${place}/config.json`))
      assert.deepStrictEqual((yield* run(backup, true)).written, [target, `${place}/config.json`])
      const deep = yield* foreign(`${elsewhere}/none/there.sqlite`, undefined)
      assert.include(yield* messageOf(run(deep, true)), `${elsewhere}/none does not exist`)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)))

  it.effect.each(["config.json", "config.json.jwt-secret"])(
    "refuses data that would replace a file of the configuration: %s",
    (name) =>
      Effect.gen(function*() {
        const { folder, fs } = yield* filled
        yield* fs.writeFileString(`${folder}/data/${name}`, "forged")
        yield* within(folder)(backUp(`${folder}/backup`))
        const other = yield* fs.makeTempDirectoryScoped()
        const restored = within(other, { GATEWAY_DATA_DIR: other })(restore(`${folder}/backup`, { force: true }))
        assert.include(yield* messageOf(restored), `would replace ${other}/${name}`)
        assert.deepStrictEqual(yield* fs.readDirectory(other), [])
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.effect("writes nothing but a database as the history", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const [place, elsewhere] = [yield* fs.makeTempDirectoryScoped(), yield* fs.makeTempDirectoryScoped()]
      const backup = yield* foreign(`${elsewhere}/authorized_keys`, "ssh-ed25519 AAAA")
      assert.include(yield* within(place)(messageOf(restore(backup, { force: true }))), "is no SQLite database")
      assert.isFalse(yield* fs.exists(`${elsewhere}/authorized_keys`))
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)))

  it.effect.each(["config.json", "data/usage.sqlite", "data", "backup.json"])(
    "refuses a backup with a link: %s",
    (name) =>
      Effect.gen(function*() {
        const { folder, fs } = yield* filled
        const to = `${folder}/backup`
        yield* within(folder)(backUp(to))
        yield* fs.rename(`${to}/${name}`, `${folder}/moved`)
        yield* fs.symlink(`${folder}/moved`, `${to}/${name}`)
        const other = yield* fs.makeTempDirectoryScoped()
        assert.match(
          yield* within(other)(messageOf(restore(to, { force: true }))),
          / is a link: a backup has files only$/
        )
        assert.deepStrictEqual(yield* fs.readDirectory(other), [])
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.effect("refuses a place in use; with force it replaces the files of the backup, and keeps others", () =>
    Effect.gen(function*() {
      const { folder, fs } = yield* filled
      const to = `${folder}/backup`
      yield* within(folder)(backUp(to))
      const taken = yield* fs.makeTempDirectoryScoped()
      const run = (force: boolean) => within(taken)(restore(to, { force }))
      yield* fs.makeDirectory(`${taken}/data`)
      yield* fs.writeFileString(`${taken}/data/usage.sqlite-wal`, "of the database before")
      yield* fs.writeFileString(`${taken}/data/usage.sqlite`, "old")
      assert.include(yield* messageOf(run(false)), `${taken}/data is in use`)
      yield* fs.writeFileString(`${taken}/config.json`, "{}")
      yield* fs.writeFileString(`${taken}/data/own`, "own")
      assert.include(yield* messageOf(run(false)), `${taken}/config.json is in use`)
      assert.strictEqual(yield* fs.readFileString(`${taken}/config.json`), "{}")
      yield* run(true)
      assert.strictEqual(yield* fs.readFileString(`${taken}/config.json`), config)
      assert.isFalse(yield* fs.exists(`${taken}/data/usage.sqlite-wal`))
      assert.strictEqual(yield* fs.readFileString(`${taken}/data/own`), "own")
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)))

  it.effect("refuses a backup that is damaged, incomplete or of another format, and changes nothing", () =>
    Effect.gen(function*() {
      const { folder, fs } = yield* filled
      const to = `${folder}/backup`
      yield* within(folder)(backUp(to))
      const other = yield* fs.makeTempDirectoryScoped()
      const refusal = within(other)(messageOf(restore(to, { force: true })))
      const manifest = yield* fs.readFileString(`${to}/backup.json`)
      const edited = (from: string, into: string) =>
        fs.writeFileString(`${to}/backup.json`, manifest.replace(from, into))
      yield* edited(`"format":1`, `"format":2`)
      assert.include(yield* refusal, "has format 2, and this version reads format 1: restore it with ")
      yield* edited(`"jwt-secret"`, `"data/../../jwt-secret"`)
      assert.include(yield* refusal, "is damaged: it names data/../../jwt-secret")
      yield* edited("", "")
      yield* fs.writeFileString(`${to}/data/more/shared-config.sealed`, "sealeD")
      assert.include(yield* refusal, "shared-config.sealed is damaged or missing")
      yield* fs.remove(`${to}/backup.json`)
      assert.include(yield* refusal, "is no complete backup")
      assert.deepStrictEqual(yield* fs.readDirectory(other), [])
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)))
})
