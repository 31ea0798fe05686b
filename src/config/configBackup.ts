/**
 * Backup of the shared configuration in a file, encrypted as the copy in a node's data folder, and its way back to the store.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import { type Encryption, makeEncryption } from "../cluster/store/encryption.ts"
import { Store } from "../cluster/store/Store.ts"
import { nodeName, StoreInvalid, StoreUnavailable } from "../cluster/store/StoreShape.ts"
import { ConfigFileError } from "./ConfigError.ts"
import { makeConfigFile } from "./ConfigFile.ts"
import { decodeConfig } from "./decodeConfig.ts"
import { Environment, namedFolder } from "./Environment.ts"
import { parseConfig } from "./json.ts"
import { loadShared, readShared } from "./sharedConfig.ts"
import { type Kept, type KeptDocument, keptName, openKept, sealKept } from "./sharedDocument.ts"
import { storeKeys, storeSettings } from "./storeSettings.ts"

/** Runs an effect with the store that the environment names, as a node of its own name. */
export const withStore = Effect.fnUntraced(function*<A, E, R>(version: string, effect: Effect.Effect<A, E, R | Store>) {
  const settings = yield* storeSettings(yield* Environment, version)
  if (settings === undefined) {
    return yield* new StoreInvalid({
      message: "GATEWAY_STORE_URL names no store: without one, the configuration is a file"
    })
  }
  return yield* Effect.provide(effect, Store.layerRedis({ ...settings, nodeId: nodeName() }))
})

const readKept = Effect.fnUntraced(function*(encryption: Encryption, path: string) {
  const content = yield* (yield* makeConfigFile(path)).read
  if (Option.isNone(content)) return yield* new ConfigFileError({ message: `${path}: there is no such file` })
  const kept = openKept(encryption, content.value.text)
  if (Option.isSome(kept)) return kept.value
  return yield* new ConfigFileError({
    message: `${path} is no backup, or is encrypted with another store key: set GATEWAY_STORE_KEY_PREVIOUS to that key`
  })
})

/** Writes the document of the store to a file. Returns its revision. */
export const backUpStore = Effect.fnUntraced(function*(path: string) {
  const store = yield* Store
  const there = yield* readShared(store)
  if (Option.isNone(there)) {
    return yield* new StoreInvalid({
      message: "the store has no configuration: --offline takes that of the data folder"
    })
  }
  yield* (yield* makeConfigFile(path)).replace(sealKept(store.secrets, there.value))
  return there.value.revision
})

/** Writes the document of this node's data folder to a file. Returns its revision. */
export const backUpFolder = Effect.fnUntraced(function*(path: string) {
  const { key, previousKey } = yield* storeKeys(yield* Environment)
  const encryption = makeEncryption(Redacted.value(key), previousKey && Redacted.value(previousKey))
  const kept = yield* readKept(encryption, (yield* Path.Path).join(yield* namedFolder, keptName))
  yield* (yield* makeConfigFile(path)).replace(sealKept(encryption, kept))
  return kept.revision
})

/** A document that is read once, and never written. */
const readOnly = (path: string, kept: Kept): KeptDocument => ({
  path,
  read: Effect.succeedSome(kept),
  setAside: Effect.void,
  keep: () => Effect.void,
  keepSoon: () => undefined,
  isKept: () => false
})

const isSuperseded = Predicate.isTagged("Superseded")

/** How often a change is tried when another one comes first. */
const tries = 20

/**
 * Writes the document of a file to an empty store, or with `force` in place of another one, as a change that all nodes take.
 * Returns its revision there.
 */
export const restoreStore = Effect.fnUntraced(function*(path: string, force: boolean) {
  const store = yield* Store
  const kept = yield* readKept(store.secrets, path)
  const next = yield* decodeConfig(yield* parseConfig(path, kept.text), { source: path, duplicates: "keep-first" })
  const loaded = { ...next, advice: [], version: Option.none(), envBacked: true }
  const there = yield* readShared(store)
  if (Option.isNone(there)) return (yield* loadShared(store, loaded, readOnly(path, kept))).revision()
  if (!force) {
    return yield* new StoreInvalid({
      message: `the store has a configuration (revision ${there.value.revision}): --force replaces it`
    })
  }
  const replace = Effect.gen(function*() {
    const shared = yield* loadShared(store, loaded, undefined, true)
    yield* shared.backing.save(next.snapshot, shared.initial.snapshot)
    return shared.revision()
  })
  return yield* replace.pipe(
    Effect.retry({ while: isSuperseded, schedule: Schedule.spaced("100 millis"), times: tries }),
    Effect.catchIf(
      isSuperseded,
      () =>
        Effect.fail(new StoreUnavailable({ message: "the configuration of the store changes all the time: try again" }))
    )
  )
})
