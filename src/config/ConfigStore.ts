/**
 * The configuration in effect, and the only way to change it.
 *
 * Changes run one at a time: each is decoded as a whole, saved durably and then published. The file may be edited by hand at any
 * time; an edit is applied, merged with a concurrent change, or rejected, but never lost.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import * as SubscriptionRef from "effect/SubscriptionRef"
import { Store } from "../cluster/store/Store.ts"
import { retryWhileUnavailable, type StoreInvalid, StoreUnavailable } from "../cluster/store/StoreShape.ts"
import { monotonicMillis } from "../domain/time.ts"
import { AdminCredentials, type GivenCredentials, makeAdminCredentials } from "./AdminCredentials.ts"
import { type Backing, fileBacking, memoryBacking } from "./Backing.ts"
import { whileWaiting } from "./clock/waiting.ts"
import { ConfigConflict, type ConfigFileError, type ConfigInvalid, type ConfigLocked } from "./ConfigError.ts"
import { type FileContent, makeConfigFile } from "./ConfigFile.ts"
import { configHashOf } from "./configHash.ts"
import { ConfigOrigin, type ConfigSource, inMemory, makeLock } from "./ConfigOrigin.ts"
import { decodeConfig, type DecodedConfig } from "./decodeConfig.ts"
import type { ConfigInput } from "./document.ts"
import { loadEndedLogins, makeEndedLogins, makeSharedEndedLogins } from "./EndedLogins.ts"
import { Environment, type EnvironmentShape, namedFolder } from "./Environment.ts"
import type { GatewayConfig, Snapshot } from "./GatewayConfig.ts"
import { parseConfig, type RawConfig } from "./json.ts"
import { LastingEncryption } from "./LastingEncryption.ts"
import { besideConfig, byAdminKey, encryptingBy } from "./lastingKeys.ts"
import { ListedModels, makeListedModels } from "./ListedModels.ts"
import { mergeConfigs } from "./merge.ts"
import { followFile, settleOwn } from "./ownConfig.ts"
import { noteRemovedKeys } from "./rawConfig.ts"
import { followSecretFiles } from "./secretFiles.ts"
import { generateKey, loadJwtSecret, makeJwtSecret } from "./secrets.ts"
import { loadShared, makeSharedRevision, type Shared, SharedRevision } from "./sharedConfig.ts"
import { keptName, makeKeptDocument } from "./sharedDocument.ts"
import { loadConfig } from "./sources.ts"

/** A configuration and its successor. */
export interface ConfigChange {
  readonly before: RawConfig
  readonly after: RawConfig
}

/** A change without a request: an edit of the file, or one that the gateway makes itself. */
export interface OwnChange extends ConfigChange {
  readonly by: "file" | "system"
  /** The edited file, or what the gateway does. */
  readonly what: string
}

/** The configuration after a change. */
export interface Saved {
  readonly config: GatewayConfig
  /** What was saved; absent if nothing was. */
  readonly change: ConfigChange | undefined
  /** False if the change is lost when the process ends; in a cluster, when the store and all nodes end. */
  readonly config_writable: boolean
  /** True if only a sync to the hosting platform preserves the change. */
  readonly needs_host_sync: boolean
}

/** Why a change failed: it is invalid, conflicts with another change, is refused by a lock, or could not be saved. */
export type UpdateError = ConfigInvalid | ConfigConflict | ConfigLocked | ConfigFileError | StoreUnavailable

/** Bounds the own changes that wait for their reader. */
const mostOwnChanges = 16

/** Maximum merges of a change with concurrent changes: of two writers without a pause, one may lose several turns in a row. */
const mostMerges = 20

/** Options of a change of the configuration. */
export interface UpdateOptions {
  /** The `configHash` that the change is based on; a different current hash is a conflict. */
  readonly expected?: string | undefined
  /** Validates the change and returns its result without applying it. */
  readonly dryRun?: boolean | undefined
  /** Emits the change in `ownChanges`. */
  readonly own?: Pick<OwnChange, "by" | "what"> | undefined
}

export interface ConfigStoreShape {
  /** The configuration in effect. */
  readonly current: Effect.Effect<GatewayConfig>
  /** Like `current`, synchronous for the hot path. */
  readonly now: () => GatewayConfig
  readonly currentRaw: Effect.Effect<RawConfig>
  /** Emits the configuration in effect and every later one. */
  readonly changes: Stream.Stream<GatewayConfig>
  /** Emits changes without a request, each to one reader. The last 16 wait for a reader that starts later. */
  readonly ownChanges: Stream.Stream<OwnChange>
  /**
   * Changes the configuration. `f` maps the raw configuration to a new one and must not mutate it. Updates run one after
   * another, so that `f` sees what it changes.
   */
  readonly update: <E, R>(
    f: (raw: RawConfig, config: GatewayConfig) => Effect.Effect<RawConfig, E, R>,
    options?: UpdateOptions
  ) => Effect.Effect<Saved, E | UpdateError, R>
}

interface Options {
  readonly initial: DecodedConfig
  readonly backing: Backing
  readonly source: ConfigSource
  readonly advice: ReadonlyArray<string> | undefined
  readonly credentials: GivenCredentials
  readonly encryption: LastingEncryption["Service"]
  /** Set in a cluster; no keys are generated then. */
  readonly shared: Pick<Shared, "revision" | "isCurrent" | "newestRevision" | "keptIn"> | undefined
}

const logWarnings = (path: string, warnings: ReadonlyArray<string>): Effect.Effect<void> =>
  warnings.length === 0
    ? Effect.void
    : Effect.logWarning(`${path}: ${warnings.slice(0, 10).join("; ")}${warnings.length > 10 ? "; and more" : ""}`)

const sourceOf = (environment: EnvironmentShape, env_backed: boolean): ConfigSource => ({
  env_backed,
  env_source_present: environment.configJson !== undefined,
  env_writeback_enabled: environment.configWriteback,
  env_locked: environment.locked,
  config_path: environment.configPath
})

/** The services of one loaded configuration. */
export type ConfigServices =
  | ConfigStore
  | ConfigOrigin
  | AdminCredentials
  | LastingEncryption
  | ListedModels
  | SharedRevision

const make = Effect.fnUntraced(function*(
  options: Options
): Effect.fn.Return<Context.Context<ConfigServices>, never, Scope.Scope> {
  const { advice = [], backing, shared, source } = options
  yield* logWarnings(source.config_path, options.initial.warnings)
  yield* Effect.forEach(advice, (each) => Effect.logWarning(each))

  const generatedKey = options.initial.snapshot.config.keys.length === 0 && shared === undefined
    ? generateKey("gw")
    : undefined
  const { config, raw } = options.initial.snapshot
  const initial: Snapshot = generatedKey === undefined
    ? { raw, config }
    : { raw, config: { ...config, keys: [generatedKey], generated_key: generatedKey } }
  const state = yield* SubscriptionRef.make(initial)
  const writer = yield* Semaphore.make(1)
  const clock = yield* Clock.Clock
  const ownChanges = yield* Queue.sliding<OwnChange>(mostOwnChanges)

  const needsSync = Effect.fnUntraced(function*({ config, raw }: Snapshot) {
    if (!source.env_backed || raw === initial.raw) return false
    const synced = config.host.last_synced_hash
    // The platform has the configuration of the start until another one is synced.
    const there = synced === initial.config.host.last_synced_hash ? yield* configHashOf(initial.raw) : synced
    return (yield* configHashOf(raw)) !== there
  })
  const needsHostSync = Effect.suspend(() => needsSync(SubscriptionRef.getUnsafe(state)))

  const refusal = makeLock(source)

  const saved = Effect.fnUntraced(function*(snapshot: Snapshot, change?: ConfigChange) {
    return {
      config: snapshot.config,
      change,
      config_writable: yield* backing.writable,
      needs_host_sync: yield* needsSync(snapshot)
    }
  })

  const decode = (raw: RawConfig, duplicates: "refuse" | "keep-first") => {
    const previous = SubscriptionRef.getUnsafe(state)
    return decodeConfig(raw, { previous, generatedKey: previous.config.generated_key, duplicates })
  }

  const adopt = Effect.fnUntraced(function*(edit: FileContent) {
    const raw = yield* parseConfig(backing.place, edit.text)
    const before = SubscriptionRef.getUnsafe(state).raw
    const { snapshot, warnings } = yield* decode(noteRemovedKeys(before, raw), "keep-first")
    yield* logWarnings(backing.place, warnings)
    backing.adopted(edit, snapshot)
    const previous = SubscriptionRef.getUnsafe(state)
    yield* SubscriptionRef.set(state, snapshot)
    // A change of the shared document is another node's, which records it.
    if (shared === undefined) {
      yield* Queue.offer(ownChanges, { by: "file", what: backing.place, before, after: snapshot.raw })
    }
    // Removed keys must be remembered after a restart too.
    if (noteRemovedKeys(before, raw) !== raw) {
      yield* Effect.catch(
        backing.save(snapshot, previous),
        (error) => error._tag === "Superseded" ? Effect.void : Effect.logWarning(error.message)
      )
    }
    yield* Effect.logInfo(`${backing.place} was edited: the change is applied`)
    if (previous.config.generated_key !== snapshot.config.generated_key) {
      yield* Effect.logInfo("The generated gateway key is no longer accepted")
    }
    return snapshot.raw
  })

  /** Applies a pending edit and returns its configuration. */
  const meetEdit = Effect.gen(function*() {
    const edit = yield* backing.edited
    if (Option.isNone(edit)) return Option.none<RawConfig>()
    return yield* Effect.asSome(adopt(edit.value)).pipe(
      Effect.catchTag("ConfigInvalid", (error) => {
        backing.refused()
        return new ConfigConflict({
          message: `${backing.place} was edited and the edit is invalid: correct it first (${error.message})`
        })
      })
    )
  })

  /** Runs an effect when the changes before it are done. It gets the time since which it waits, which bounds its wait for the file. */
  const inTurn = <A, E, R>(work: (since: number) => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.suspend(() => {
      const since = monotonicMillis(clock)
      return Effect.scopedWith((own) =>
        Effect.andThen(
          whileWaiting(Scope.provide(writer.takeScoped(1), own)),
          Effect.suspend(() => work(since))
        )
      )
    })

  const updateNow = Effect.fnUntraced(function*<E, R>(
    f: (raw: RawConfig, config: GatewayConfig) => Effect.Effect<RawConfig, E, R>,
    { dryRun = false, expected, own }: UpdateOptions,
    since: number
  ) {
    let base = SubscriptionRef.getUnsafe(state)
    let edited = yield* meetEdit
    const checkExpected = Effect.gen(function*() {
      if (expected === undefined || (yield* configHashOf(SubscriptionRef.getUnsafe(state).raw)) === expected) return
      return yield* new ConfigConflict({ message: "the configuration was changed since it was read: read it again" })
    })
    yield* checkExpected
    const ours = yield* Effect.catchIf(f(base.raw, base.config), () => Option.isSome(edited), () => {
      // The change failed on the configuration before the edit; it may succeed after it.
      base = SubscriptionRef.getUnsafe(state)
      edited = Option.none()
      return f(base.raw, base.config)
    })
    if (ours === base.raw) return yield* saved(SubscriptionRef.getUnsafe(state))
    for (let merges = 0;; merges++) {
      const next = Option.isNone(edited) ? ours : yield* mergeConfigs(base.raw, ours, edited.value)
      const { snapshot } = yield* decode(noteRemovedKeys(base.raw, next), "refuse")
      if (dryRun) return yield* saved(snapshot)
      const locked = own === undefined ? refusal(SubscriptionRef.getUnsafe(state).config) : undefined
      if (locked !== undefined) return yield* locked
      const before = SubscriptionRef.getUnsafe(state)
      const change = { before: before.raw, after: snapshot.raw }
      const done = yield* Effect.uninterruptible(
        backing.save(snapshot, before, since).pipe(
          Effect.andThen(SubscriptionRef.set(state, snapshot)),
          Effect.andThen(own === undefined ? Effect.void : Queue.offer(ownChanges, { ...own, ...change })),
          Effect.as(true),
          Effect.catchTag("Superseded", () => Effect.succeed(false))
        )
      )
      if (done) {
        const known = new Set(before.config.warnings)
        yield* logWarnings(backing.place, snapshot.config.warnings.filter((warning) => !known.has(warning)))
        return yield* saved(snapshot, change)
      }
      if (merges >= mostMerges) {
        return yield* new ConfigConflict({ message: "the configuration is being changed elsewhere: try again" })
      }
      const newer = yield* meetEdit
      if (Option.isSome(newer)) edited = newer
      yield* checkExpected
    }
  })

  const update = Effect.fn("ConfigStore.update")(<E, R>(
    f: (raw: RawConfig, config: GatewayConfig) => Effect.Effect<RawConfig, E, R>,
    options: UpdateOptions = {}
  ) => inTurn((since) => updateNow(f, options, since)))

  yield* backing.edits.pipe(
    Stream.runForEach(() =>
      Effect.matchEffect(writer.withPermit(meetEdit), {
        onFailure: (error) => Effect.logWarning(`The edit is not applied: ${error.message}`),
        onSuccess: () => Effect.void
      })
    ),
    Effect.forkScoped
  )

  yield* followSecretFiles(state, writer, (raw) => decode(raw, "keep-first"))

  const store = ConfigStore.of({
    current: Effect.sync(() => SubscriptionRef.getUnsafe(state).config),
    now: () => SubscriptionRef.getUnsafe(state).config,
    currentRaw: Effect.sync(() => SubscriptionRef.getUnsafe(state).raw),
    ownChanges: Stream.fromQueue(ownChanges),
    changes: Stream.map(SubscriptionRef.changes(state), (snapshot) => snapshot.config),
    update
  })
  const derive = (f: (config: GatewayConfig) => GatewayConfig) =>
    writer.withPermit(Effect.suspend(() => {
      const { config, raw } = SubscriptionRef.getUnsafe(state)
      const next = f(config)
      return next === config ? Effect.void : SubscriptionRef.set(state, { raw, config: next })
    }))
  return Context.make(ConfigStore, store).pipe(
    Context.add(ConfigOrigin, {
      source,
      advice,
      configWritable: backing.writable,
      locked: Effect.sync(() => refusal(SubscriptionRef.getUnsafe(state).config) !== undefined),
      needsHostSync
    }),
    Context.add(AdminCredentials, makeAdminCredentials(options.credentials, shared !== undefined)),
    Context.add(LastingEncryption, options.encryption),
    Context.add(ListedModels, makeListedModels(derive)),
    Context.add(SharedRevision, yield* makeSharedRevision(shared, Effect.ignore(writer.withPermit(meetEdit))))
  )
})

/** The configuration in effect, and its changes. Each layer provides the other services of the configuration too (`ConfigServices`). */
export class ConfigStore extends Context.Service<ConfigStore, ConfigStoreShape>()("model-gateway/config/ConfigStore") {
  /** The configuration of the file or the environment (`loadConfig`). Fails if it is invalid. */
  static readonly layer: Layer.Layer<
    ConfigServices,
    ConfigInvalid | ConfigFileError,
    Environment | FileSystem.FileSystem | Path.Path
  > = Layer.effectContext(
    Effect.gen(function*() {
      const environment = yield* Environment
      const file = yield* makeConfigFile(environment.configPath)
      const loaded = yield* loadConfig(environment, file)
      const lasting = !loaded.envBacked &&
        (environment.adminKey !== undefined || loaded.snapshot.config.admin.password_hash !== undefined)
      return yield* make({
        initial: loaded,
        backing: loaded.envBacked ? memoryBacking : yield* fileBacking(file, loaded.version),
        source: sourceOf(environment, loaded.envBacked),
        advice: loaded.advice,
        credentials: {
          adminKey: environment.adminKey,
          // A login must not outlive a generated admin key.
          jwtSecret: lasting ? yield* loadJwtSecret(environment.configPath) : yield* makeJwtSecret,
          endedLogins: lasting ? yield* loadEndedLogins(environment.configPath) : yield* makeEndedLogins
        },
        encryption: loaded.envBacked ? encryptingBy(byAdminKey(environment)) : yield* besideConfig(environment),
        shared: undefined
      })
    })
  )

  /**
   * The shared configuration of a cluster. The first node initializes it from its data folder, else from its file or the
   * environment. A later edit of the file is a change like any other.
   */
  static readonly layerShared: Layer.Layer<
    ConfigServices,
    ConfigInvalid | ConfigFileError | StoreInvalid | StoreUnavailable,
    Environment | FileSystem.FileSystem | Path.Path | Store
  > = Layer.effectContext(
    Effect.gen(function*() {
      const environment = yield* Environment
      const file = yield* makeConfigFile(environment.configPath)
      const loaded = yield* loadConfig(environment, file)
      const store = yield* Store
      const { join } = yield* Path.Path
      // A configuration from the environment has no folder.
      const kept = loaded.envBacked && environment.dataDir === undefined
        ? undefined
        : yield* makeKeptDocument(store, yield* makeConfigFile(join(yield* namedFolder, keptName)))
      const shared = yield* retryWhileUnavailable(loadShared(store, loaded, kept))
      const services = yield* make({
        initial: shared.initial,
        backing: shared.backing,
        source: sourceOf(environment, false),
        advice: loaded.advice,
        credentials: {
          adminKey: environment.adminKey,
          jwtSecret: shared.jwtSecret,
          endedLogins: yield* makeSharedEndedLogins(store)
        },
        encryption: encryptingBy(store.secrets),
        shared
      })
      const updateAs =
        (by: OwnChange["by"], what: string) => (f: (raw: RawConfig) => Effect.Effect<RawConfig, UpdateError>) =>
          Context.get(services, ConfigStore).update(f, { own: { by, what } })
      yield* shared.mergeKept(updateAs("system", "newer changes of this node were merged"))
      const { currentRaw } = Context.get(services, ConfigStore)
      const own = loaded.envBacked ? "GATEWAY_CONFIG_JSON" : file.path
      yield* settleOwn(loaded, yield* currentRaw, updateAs("file", own)).pipe(
        Effect.catchTag(
          ["ConfigConflict", "ConfigLocked"],
          ({ message }) => Effect.fail(new StoreUnavailable({ message }))
        )
      )
      if (!loaded.envBacked) yield* followFile(file, loaded, updateAs("file", file.path))
      return services
    })
  )

  /**
   * A configuration in memory, for embedders: the fields of the file, checked by the compiler and at build time.
   * `adminKey` is the credential of the admin API and the console; without it the gateway generates one (`adminKey` of
   * `AdminCredentials`).
   */
  static readonly layerMemory = (
    config: ConfigInput = {},
    options?: { readonly adminKey?: string | undefined }
  ): Layer.Layer<ConfigServices, ConfigInvalid> => ConfigStore.layerJson({ ...config }, options)

  /** Like `layerMemory`, for any JSON object, unknown fields included. */
  static readonly layerJson = (
    raw: RawConfig = {},
    options?: { readonly adminKey?: string | undefined }
  ): Layer.Layer<ConfigServices, ConfigInvalid> =>
    Layer.effectContext(
      Effect.gen(function*() {
        const adminKey = options?.adminKey === undefined ? undefined : Redacted.make(options.adminKey)
        return yield* make({
          initial: yield* decodeConfig(raw, { duplicates: "keep-first" }),
          backing: memoryBacking,
          source: inMemory,
          credentials: {
            adminKey,
            jwtSecret: yield* makeJwtSecret,
            endedLogins: yield* makeEndedLogins
          },
          encryption: encryptingBy(byAdminKey({ adminKey })),
          advice: undefined,
          shared: undefined
        })
      })
    )
}
