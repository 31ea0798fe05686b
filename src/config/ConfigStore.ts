/**
 * The configuration in effect, for everyone who needs it, and the one way to change it.
 *
 * Changes are made one at a time: decoded as a whole, saved durably, and only then published. The file may be edited by hand
 * meanwhile; an edit is applied, or merged with a change that meets it, or refused, but never lost.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import * as SubscriptionRef from "effect/SubscriptionRef"
import { createHash, timingSafeEqual } from "node:crypto"
import { Store } from "../cluster/store/Store.ts"
import { patiently, type StoreInvalid, StoreUnavailable } from "../cluster/store/StoreError.ts"
import { makeAsking } from "./asking.ts"
import { type Backing, fileBacking, memoryBacking } from "./Backing.ts"
import { ConfigConflict, type ConfigFileError, ConfigInvalid } from "./ConfigError.ts"
import { type FileContent, makeConfigFile } from "./ConfigFile.ts"
import { decodeConfig, type DecodedConfig } from "./decodeConfig.ts"
import type { ConfigInput } from "./document.ts"
import { type EndedLogins, loadEndedLogins, makeEndedLogins, makeSharedEndedLogins } from "./EndedLogins.ts"
import { Environment, namedFolder } from "./Environment.ts"
import type { GatewayConfig, Snapshot } from "./GatewayConfig.ts"
import { generateKey } from "./generatedKey.ts"
import { applyImport, type ImportMode } from "./importConfig.ts"
import { hashConfig, isJsonObject, parseConfig, type RawConfig, stringifyConfig } from "./json.ts"
import { loadJwtSecret, makeJwtSecret } from "./jwtSecret.ts"
import { keptName, makeKeptDocument } from "./keptDocument.ts"
import { mergeConfigs } from "./merge.ts"
import { noteRemovedKeys, withoutOwnFields } from "./ownFields.ts"
import { followFile, loadShared, type Shared } from "./sharedConfig.ts"
import { loadConfig } from "./sources.ts"

/** Facts about where the configuration comes from, by the names that the admin API has for them. */
export interface ConfigSource {
  /** The environment is the source, and changes stay in memory. */
  readonly env_backed: boolean
  readonly env_source_present: boolean
  readonly env_writeback_enabled: boolean
  readonly config_path: string
}

/** A change that took effect. */
export interface Saved {
  readonly config: GatewayConfig
  /** False when the change is gone with the process; where nodes share a store, with the store and all nodes. */
  readonly config_writable: boolean
  /** True when the change is only kept by a sync to the hosting platform. */
  readonly needs_host_sync: boolean
}

/** An import that took effect, with the keys and accounts that it added or changed. */
export interface Imported extends Saved {
  readonly imported_keys: number
  readonly imported_accounts: number
  /** What of the import was not taken, or is not known. */
  readonly warnings: ReadonlyArray<string>
}

/** A backup of the configuration: passwords and configured tokens are in it, the host sync's own fields are not. */
export interface Exported {
  readonly config: RawConfig
  readonly json: string
  readonly base64: string
}

/** Why a change did not take effect: it is not valid, met another change, or could not be saved. */
export type UpdateError = ConfigInvalid | ConfigConflict | ConfigFileError | StoreUnavailable

/** Milliseconds between two questions whether the configuration is the newest. */
const askingPause = 100

/** How often a change is merged anew with what others saved meanwhile. */
const mostMerges = 5

/** How a change is made. */
export interface UpdateOptions {
  /** The `configHash` that the change was made for: where the configuration is another one by now it is a conflict. */
  readonly expected?: string | undefined
  /** Checks the change as a whole and says what it would come to; nothing changes. */
  readonly dryRun?: boolean | undefined
}

interface ConfigStoreShape {
  /** The configuration in effect. */
  readonly current: Effect.Effect<GatewayConfig>
  /** The same, for the hot path. */
  readonly unsafeCurrent: () => GatewayConfig
  /** The configuration as its source has it, unknown fields included. */
  readonly currentRaw: Effect.Effect<RawConfig>
  /** The configuration in effect, then every later one. */
  readonly changes: Stream.Stream<GatewayConfig>
  /**
   * Changes the configuration. `f` gets the raw configuration and what it means, and gives the raw one that is to be; it must
   * not change it in place. Updates run one after another, so that what `f` sees is what it changes.
   */
  readonly update: <E, R>(
    f: (raw: RawConfig, config: GatewayConfig) => Effect.Effect<RawConfig, E, R>,
    options?: UpdateOptions
  ) => Effect.Effect<Saved, E | UpdateError, R>
  /** Takes what the spec's import takes out of any JSON object, all or nothing. */
  readonly importConfig: (
    incoming: unknown,
    mode: ImportMode,
    options?: UpdateOptions
  ) => Effect.Effect<Imported, UpdateError>
  readonly exportConfig: Effect.Effect<Exported>
  /** SHA-256 of the canonical configuration, without the host sync's own fields. */
  readonly configHash: Effect.Effect<string>
  /** The same of another configuration, such as a draft. */
  readonly hashOf: (raw: RawConfig) => Effect.Effect<string>
  readonly source: ConfigSource
  /** Whether changes outlive the process, as far as is known. */
  readonly configWritable: Effect.Effect<boolean>
  /** Whether there are changes that only a sync to the hosting platform would keep. */
  readonly needsHostSync: Effect.Effect<boolean>
  /** The business key that was generated at a start without keys; `GatewayConfig.generated_key` while it is accepted. */
  readonly generatedKey: string | undefined
  /** The environment's admin key, or the one that was generated because there was none. */
  readonly adminKey: Redacted.Redacted<string>
  readonly adminKeyGenerated: boolean
  /**
   * Compares with `adminKey` in constant time. Whether it may log in is for the admin API to say: a configured password
   * stands in for it.
   */
  readonly isAdminKey: (candidate: string) => boolean
  /** What admin JWTs are signed with. */
  readonly jwtSecret: Redacted.Redacted<Uint8Array>
  /** Waits until the configuration in effect is that of a revision of the shared document or a later one, as far as it can. */
  readonly reach: (revision: number) => Effect.Effect<void>
  /**
   * Waits until the configuration in effect is the newest of all nodes, as of a moment after the call; fails where that cannot
   * be known. `undefined` where there are no other nodes.
   */
  readonly newest: Effect.Effect<void, StoreUnavailable> | undefined
  /** The document that nodes share: its revision here, and the file that keeps it. `undefined` where there are no other nodes. */
  readonly shared: Pick<Shared, "revision" | "keptIn"> | undefined
  /** False while the shared document is one that this node cannot take. */
  readonly isCurrent: () => boolean
  /** Logins that were ended before their time. */
  readonly endedLogins: EndedLogins
}

interface Options {
  readonly initial: DecodedConfig
  readonly backing: Backing
  readonly source: ConfigSource
  readonly adminKey: Redacted.Redacted<string> | undefined
  readonly jwtSecret: Redacted.Redacted<Uint8Array>
  /** Set where other nodes share the configuration: nothing is generated then. */
  readonly shared?: Pick<Shared, "revision" | "isCurrent" | "newestRevision" | "keptIn"> | undefined
  readonly endedLogins: EndedLogins
}

const logWarnings = (path: string, warnings: ReadonlyArray<string>): Effect.Effect<void> =>
  warnings.length === 0
    ? Effect.void
    : Effect.logWarning(`${path}: ${warnings.slice(0, 10).join("; ")}${warnings.length > 10 ? "; and more" : ""}`)

const digest = (text: string): Buffer => createHash("sha256").update(text).digest()

const make = Effect.fnUntraced(function*(options: Options): Effect.fn.Return<ConfigStoreShape, never, Scope.Scope> {
  const { backing, shared, source } = options
  yield* logWarnings(source.config_path, options.initial.warnings)

  const generatedKey = options.initial.snapshot.config.keys.length === 0 && shared === undefined
    ? generateKey("gw")
    : undefined
  const adminKey = options.adminKey ?? Redacted.make(generateKey("admin"))
  const adminDigest = digest(Redacted.value(adminKey))
  const { config, raw } = options.initial.snapshot
  const initial: Snapshot = generatedKey === undefined
    ? { raw, config }
    : { raw, config: { ...config, keys: [generatedKey], generated_key: generatedKey } }
  const state = yield* SubscriptionRef.make(initial)
  const writer = yield* Semaphore.make(1)
  const hashes = new WeakMap<RawConfig, string>()

  const hashOf = Effect.fnUntraced(function*(raw: RawConfig) {
    const known = hashes.get(raw)
    if (known !== undefined) return known
    const hash = yield* hashConfig(withoutOwnFields(raw))
    hashes.set(raw, hash)
    return hash
  })

  const needsSync = Effect.fnUntraced(function*({ config, raw }: Snapshot) {
    if (!source.env_backed || raw === initial.raw) return false
    const synced = config.host.last_synced_hash
    // What the platform has: the configuration of the start, until another one is synced.
    const there = synced === initial.config.host.last_synced_hash ? yield* hashOf(initial.raw) : synced
    return (yield* hashOf(raw)) !== there
  })
  const needsHostSync = Effect.suspend(() => needsSync(SubscriptionRef.getUnsafe(state)))

  const saved = Effect.fnUntraced(function*(snapshot: Snapshot) {
    return {
      config: snapshot.config,
      config_writable: yield* backing.writable,
      needs_host_sync: yield* needsSync(snapshot)
    }
  })

  const decode = (raw: RawConfig, duplicates: "refuse" | "keep-first") => {
    const previous = SubscriptionRef.getUnsafe(state)
    return decodeConfig(raw, { previous, generatedKey: previous.config.generated_key, duplicates })
  }

  /** Applies an edit that was made by hand. */
  const adopt = Effect.fnUntraced(function*(edit: FileContent) {
    const raw = yield* parseConfig(backing.place, edit.text)
    const before = SubscriptionRef.getUnsafe(state).raw
    const { snapshot, warnings } = yield* decode(noteRemovedKeys(before, raw), "keep-first")
    yield* logWarnings(backing.place, warnings)
    backing.adopted(edit, snapshot)
    const previous = SubscriptionRef.getUnsafe(state)
    yield* SubscriptionRef.set(state, snapshot)
    // Keys that the edit took out must be known after a restart too.
    if (noteRemovedKeys(before, raw) !== raw) {
      yield* Effect.catch(
        backing.save(snapshot, previous),
        (error) => error._tag === "Superseded" ? Effect.void : Effect.logWarning(error.message)
      )
    }
    yield* Effect.logInfo(`${backing.place} was edited: the change is applied`)
    if (previous.config.generated_key !== snapshot.config.generated_key) {
      yield* Effect.logInfo("The generated business key has ended")
    }
    return snapshot.raw
  })

  /** The configuration that an edit left in the file, if there was one since the last look. */
  const meetEdit = Effect.gen(function*() {
    const edit = yield* backing.edited
    if (Option.isNone(edit)) return Option.none<RawConfig>()
    return yield* Effect.asSome(adopt(edit.value)).pipe(
      Effect.catchTag("ConfigInvalid", (error) => {
        backing.refused()
        return new ConfigConflict({
          message: `${backing.place} was edited and the edit is not valid: correct it first (${error.message})`
        })
      })
    )
  })

  const update = Effect.fn("ConfigStore.update")(function*<E, R>(
    f: (raw: RawConfig, config: GatewayConfig) => Effect.Effect<RawConfig, E, R>,
    { dryRun = false, expected }: UpdateOptions = {}
  ) {
    let base = SubscriptionRef.getUnsafe(state)
    let edited = yield* meetEdit
    const checkExpected = Effect.gen(function*() {
      if (expected === undefined || (yield* hashOf(SubscriptionRef.getUnsafe(state).raw)) === expected) return
      return yield* new ConfigConflict({ message: "the configuration was changed since it was read: read it again" })
    })
    yield* checkExpected
    const ours = yield* Effect.catchIf(f(base.raw, base.config), () => Option.isSome(edited), () => {
      // Refused for what was before the edit, such as a key that the edit has brought.
      base = SubscriptionRef.getUnsafe(state)
      edited = Option.none()
      return f(base.raw, base.config)
    })
    if (ours === base.raw) return yield* saved(SubscriptionRef.getUnsafe(state))
    for (let merges = 0;; merges++) {
      const next = Option.isNone(edited) ? ours : yield* mergeConfigs(base.raw, ours, edited.value)
      const { snapshot } = yield* decode(noteRemovedKeys(base.raw, next), "refuse")
      if (dryRun) return yield* saved(snapshot)
      const done = yield* Effect.uninterruptible(
        backing.save(snapshot, SubscriptionRef.getUnsafe(state)).pipe(
          Effect.andThen(SubscriptionRef.set(state, snapshot)),
          Effect.as(true),
          Effect.catchTag("Superseded", () => Effect.succeed(false))
        )
      )
      if (done) return yield* saved(snapshot)
      if (merges >= mostMerges) {
        return yield* new ConfigConflict({ message: "the configuration is being changed elsewhere: try again" })
      }
      const newer = yield* meetEdit
      if (Option.isSome(newer)) edited = newer
      yield* checkExpected
    }
  }, writer.withPermit)

  const importConfig = Effect.fn("ConfigStore.importConfig")(function*(
    incoming: unknown,
    mode: ImportMode,
    options?: UpdateOptions
  ) {
    if (!isJsonObject(incoming)) {
      return yield* ConfigInvalid.of([{ field: "", message: "the configuration must be a JSON object" }])
    }
    const now = Math.floor((yield* Clock.currentTimeMillis) / 1000)
    const counts = { imported_keys: 0, imported_accounts: 0 }
    let warnings: ReadonlyArray<string> = []
    const result = yield* update(
      Effect.fnUntraced(function*(raw, config) {
        const applied = yield* applyImport({ raw, config }, incoming, mode, now)
        counts.imported_keys = applied.imported_keys
        counts.imported_accounts = applied.imported_accounts
        warnings = applied.warnings
        return applied.raw
      }),
      options
    )
    return { ...result, ...counts, warnings }
  })

  yield* backing.edits.pipe(
    Stream.runForEach(() =>
      Effect.matchEffect(writer.withPermit(meetEdit), {
        onFailure: (error) => Effect.logWarning(`The edit is not applied: ${error.message}`),
        onSuccess: () => Effect.void
      })
    ),
    Effect.forkScoped
  )

  const reach = (revision: number) =>
    Effect.suspend(() =>
      shared === undefined || shared.revision() >= revision
        ? Effect.void
        : Effect.ignore(writer.withPermit(meetEdit))
    )
  const newest = shared === undefined ? undefined : yield* makeAsking(
    Effect.gen(function*() {
      const revision = yield* shared.newestRevision
      yield* reach(revision)
      if (shared.revision() < revision) {
        return yield* new StoreUnavailable({ message: "The newest configuration cannot be taken" })
      }
    }),
    askingPause
  )

  return {
    current: Effect.sync(() => SubscriptionRef.getUnsafe(state).config),
    unsafeCurrent: () => SubscriptionRef.getUnsafe(state).config,
    currentRaw: Effect.sync(() => SubscriptionRef.getUnsafe(state).raw),
    changes: Stream.map(SubscriptionRef.changes(state), (snapshot) => snapshot.config),
    update,
    importConfig,
    exportConfig: Effect.gen(function*() {
      const config = withoutOwnFields(SubscriptionRef.getUnsafe(state).raw)
      const json = yield* stringifyConfig(config, "compact")
      return { config, json, base64: Buffer.from(json).toString("base64") }
    }),
    configHash: Effect.suspend(() => hashOf(SubscriptionRef.getUnsafe(state).raw)),
    hashOf,
    source,
    configWritable: backing.writable,
    needsHostSync,
    generatedKey,
    adminKey,
    adminKeyGenerated: options.adminKey === undefined && shared === undefined,
    isAdminKey: (candidate) => timingSafeEqual(digest(candidate), adminDigest),
    jwtSecret: options.jwtSecret,
    reach,
    newest,
    shared,
    isCurrent: shared === undefined ? () => true : shared.isCurrent,
    endedLogins: options.endedLogins
  }
})

/** The configuration, hot and durable. */
export class ConfigStore extends Context.Service<ConfigStore, ConfigStoreShape>()("model-gateway/config/ConfigStore") {
  /** The configuration of the file or the environment, as `Environment` says. Fails when it is not valid. */
  static readonly layer: Layer.Layer<
    ConfigStore,
    ConfigInvalid | ConfigFileError,
    Environment | FileSystem.FileSystem | Path.Path
  > = Layer.effect(
    ConfigStore,
    Effect.gen(function*() {
      const environment = yield* Environment
      const file = yield* makeConfigFile(environment.configPath)
      const loaded = yield* loadConfig(environment, file)
      const lasting = !loaded.envBacked &&
        (environment.adminKey !== undefined || loaded.snapshot.config.admin.password_hash !== undefined)
      return yield* make({
        initial: loaded,
        backing: loaded.envBacked ? memoryBacking : yield* fileBacking(file, loaded.version),
        source: {
          env_backed: loaded.envBacked,
          env_source_present: environment.configJson !== undefined,
          env_writeback_enabled: environment.configWriteback,
          config_path: environment.configPath
        },
        adminKey: environment.adminKey,
        // While the admin key itself is a generated one, a login must not outlive it.
        jwtSecret: lasting ? yield* loadJwtSecret(environment.configPath) : yield* makeJwtSecret,
        endedLogins: lasting ? yield* loadEndedLogins(environment.configPath) : yield* makeEndedLogins
      })
    })
  )

  /**
   * The configuration that the nodes of a store share. The first node puts there what its data folder has kept of it, else what
   * its file or the environment has; an edit of the file while the node runs is a change like any other.
   */
  static readonly layerShared: Layer.Layer<
    ConfigStore,
    ConfigInvalid | ConfigFileError | StoreInvalid | StoreUnavailable,
    Environment | FileSystem.FileSystem | Path.Path | Store
  > = Layer.effect(
    ConfigStore,
    Effect.gen(function*() {
      const environment = yield* Environment
      const file = yield* makeConfigFile(environment.configPath)
      const loaded = yield* loadConfig(environment, file)
      const store = yield* Store
      const { join } = yield* Path.Path
      // A configuration that is from the environment alone has no place beside it.
      const kept = loaded.envBacked && environment.dataDir === undefined
        ? undefined
        : yield* makeKeptDocument(store, yield* makeConfigFile(join(yield* namedFolder, keptName)))
      const shared = yield* patiently(loadShared(store, loaded, kept))
      const config = yield* make({
        initial: shared.initial,
        backing: shared.backing,
        source: {
          env_backed: false,
          env_source_present: environment.configJson !== undefined,
          env_writeback_enabled: environment.configWriteback,
          config_path: environment.configPath
        },
        adminKey: environment.adminKey,
        jwtSecret: shared.jwtSecret,
        endedLogins: yield* makeSharedEndedLogins(store),
        shared
      })
      yield* shared.mergeKept(config.update)
      if (!loaded.envBacked) yield* followFile(file, loaded, config.update)
      return config
    })
  )

  /**
   * A configuration that is kept in memory only, for embedders: the fields of the file, checked by the compiler and when it
   * is built. `adminKey` is the credential of the admin API and the console; without it the gateway
   * generates one: `adminKey` of the service.
   */
  static readonly layerMemory = (
    config: ConfigInput = {},
    options?: { readonly adminKey?: string | undefined }
  ): Layer.Layer<ConfigStore, ConfigInvalid> => ConfigStore.layerJson({ ...config }, options)

  /** The same for any JSON, fields included that the gateway does not know. */
  static readonly layerJson = (
    raw: RawConfig = {},
    options?: { readonly adminKey?: string | undefined }
  ): Layer.Layer<ConfigStore, ConfigInvalid> =>
    Layer.effect(
      ConfigStore,
      Effect.gen(function*() {
        return yield* make({
          initial: yield* decodeConfig(raw, { duplicates: "keep-first" }),
          backing: memoryBacking,
          source: { env_backed: false, env_source_present: false, env_writeback_enabled: false, config_path: "" },
          adminKey: options?.adminKey === undefined ? undefined : Redacted.make(options.adminKey),
          jwtSecret: yield* makeJwtSecret,
          endedLogins: yield* makeEndedLogins
        })
      })
    )
}
