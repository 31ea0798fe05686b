/**
 * Secrets in files: `${file:/run/secrets/name}` is the text of a file in a folder that `GATEWAY_SECRET_DIRS` names. An operator who may change
 * the configuration could else read any file of the machine.
 *
 * Files are read before the configuration is decoded, and again when one changes.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type * as Semaphore from "effect/Semaphore"
import * as SubscriptionRef from "effect/SubscriptionRef"
import { realpath } from "node:fs/promises"
import path from "node:path"
import type { ConfigInvalid } from "./ConfigError.ts"
import type { Snapshot } from "./GatewayConfig.ts"
import { forEachCooperatively, type RawConfig } from "./json.ts"
import { filePrefix, type Variables } from "./references.ts"
import { fileStamp, readRegularFile } from "./regularFile.ts"
import { parseSecretFolders, secretFoldersVariable } from "./secretFolders.ts"

/** The most bytes of a file, and the most files of a configuration. */
const longestSecret = 64 * 1024
const mostFiles = 1000

/** Files that are read concurrently, and milliseconds between two looks at them. */
const readsAtOnce = 4
const pollInterval = 2000

/** The folders whose files references may name. */
export const SecretFolders = Context.Reference<() => ReadonlyArray<string>>("model-gateway/config/SecretFolders", {
  defaultValue: () => () => parseSecretFolders(process.env[secretFoldersVariable] ?? "") ?? []
})

const reference = /\$\$\{|\$\{(file:[^}]*)\}/g

const noPaths: ReadonlyArray<string> = []

/** The references to files within a part of a configuration. */
const referencesIn = (part: Schema.Json | undefined): ReadonlyArray<string> => {
  if (typeof part === "string") {
    return part.includes(`\${${filePrefix}`) ? [...part.matchAll(reference)].flatMap(([, name]) => name ?? []) : noPaths
  }
  if (typeof part !== "object" || part === null) return noPaths
  return Object.values(part).flatMap(referencesIn)
}

/** What was found in a part of a configuration, which stays the same object while it does not change. */
const found = new WeakMap<object, ReadonlyArray<string>>()

const foundIn = Effect.fnUntraced(function*(part: Schema.Json | undefined) {
  if (typeof part !== "object" || part === null) return noPaths
  const known = found.get(part)
  if (known !== undefined) return known
  const names: Array<string> = []
  yield* forEachCooperatively(Object.values(part), (each) => {
    names.push(...referencesIn(each))
  })
  found.set(part, names)
  return names
})

/** The groups whose secrets may refer to files. */
const groups = ["accounts", "upstream", "upstreams", "webhooks"]

const namesIn = (raw: RawConfig): Effect.Effect<ReadonlyArray<string>> =>
  Effect.map(
    Effect.forEach(groups, (group) => foundIn(raw[group])),
    (all) => [...new Set(all.flat())].slice(0, mostFiles)
  )

/** The real path of a file if a folder allows it, else `null`. Links within a folder, as Kubernetes makes them, stay in it. */
const allowed = (file: string, folders: ReadonlyArray<string>): Promise<string | null> =>
  Promise.all([realpath(file), ...folders.map((folder) => realpath(folder).catch(() => ""))]).then(([real, ...roots]) =>
    path.isAbsolute(file) && roots.some((root) => root !== "" && real!.startsWith(root + path.sep)) ? real! : null
  )

const readSecret = (name: string, folders: ReadonlyArray<string>): Effect.Effect<string | null | undefined> => {
  const file = name.slice(filePrefix.length)
  const isWithin = folders.some((folder) => path.resolve(file).startsWith(path.resolve(folder) + path.sep))
  if (!isWithin) return Effect.succeed(null)
  return Effect.tryPromise(() => allowed(file, folders)).pipe(
    Effect.flatMap((real) =>
      real === null
        ? Effect.succeed(null)
        : Effect.map(readRegularFile(real, longestSecret), (bytes) =>
          bytes.toString("utf8").replace(/[\r\n]+$/, "") || undefined)
    ),
    Effect.orElseSucceed(() => undefined)
  )
}

/** The variables with the texts of the files that a configuration refers to. */
export const withSecretFiles = Effect.fnUntraced(function*(raw: RawConfig, variables: Variables) {
  const names = yield* namesIn(raw)
  if (names.length === 0) return variables
  const folders = (yield* SecretFolders)()
  const texts = yield* Effect.forEach(names, (name) => readSecret(name, folders), { concurrency: readsAtOnce })
  const known = new Map(names.map((name, i) => [name, texts[i]]))
  const withFiles: Variables = (name) => name.startsWith(filePrefix) ? known.get(name) : variables(name)
  return withFiles
})

const stampsOf = Effect.fnUntraced(function*(raw: RawConfig) {
  const stamps = yield* Effect.forEach(
    yield* namesIn(raw),
    (name) => Effect.map(fileStamp(name.slice(filePrefix.length)), (stamp) => `${name} ${stamp}`)
  )
  return stamps.join("\n")
})

/** The configuration as another object, of which nothing is taken as decoded. */
const renewed = (raw: RawConfig): RawConfig =>
  Array.isArray(raw["accounts"]) ? { ...raw, accounts: [...raw["accounts"] as ReadonlyArray<Schema.Json>] } : { ...raw }

/** Decodes the configuration again when a file changes that it refers to, until the scope ends. A wrong file leaves it as it is. */
export const followSecretFiles = Effect.fnUntraced(function*(
  state: SubscriptionRef.SubscriptionRef<Snapshot>,
  writer: Semaphore.Semaphore,
  decode: (raw: RawConfig) => Effect.Effect<{ readonly snapshot: Snapshot }, ConfigInvalid>
) {
  // Without a folder no reference to a file is valid.
  if ((yield* SecretFolders)().length === 0) return
  const rawNow = () => SubscriptionRef.getUnsafe(state).raw
  let raw = rawNow()
  let seen = yield* stampsOf(raw)
  const look = Effect.gen(function*() {
    const current = rawNow()
    const stamps = yield* stampsOf(current)
    const isEdited = current !== raw
    raw = current
    if (stamps === seen) return
    seen = stamps
    // An edit has read its files.
    if (isEdited) return
    yield* writer.withPermit(Effect.gen(function*() {
      const { snapshot } = yield* decode(renewed(rawNow()))
      raw = snapshot.raw
      yield* SubscriptionRef.set(state, snapshot)
    }))
    yield* Effect.logInfo("A file with a secret of the configuration changed: it was read again")
  }).pipe(
    Effect.catchTag(
      "ConfigInvalid",
      ({ message }) =>
        Effect.logWarning(`A file with a secret of the configuration changed, and the secret before stays: ${message}`)
    )
  )
  yield* Effect.sleep(pollInterval).pipe(Effect.andThen(look), Effect.forever, Effect.forkScoped)
})
