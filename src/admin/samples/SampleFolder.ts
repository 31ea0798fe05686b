/**
 * The folder of raw samples: writing and reading them, never outside of it.
 *
 * A sample appears whole or not at all: it is written to a folder of another name, which is then renamed.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type * as PlatformError from "effect/PlatformError"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { hash, randomBytes } from "node:crypto"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { type GatewayError, gatewayError } from "../../domain/GatewayError.ts"
import type { CaptureChain } from "../../recordings/captures/CapturedRound.ts"
import { type Recording, Recordings } from "../../upstream/embedded/recordings.ts"
import { isSampleId, numbered } from "./sampleId.ts"
import { roundsOf, SampleMeta, type SampleRequest } from "./SampleMeta.ts"

const metaFile = "meta.json"
const upstreamFile = "upstream.stream.sse"

/** What is to be saved. */
export interface NewSample {
  /** A name that `cleanSampleId` made, or `undefined` for one that is made up. */
  readonly id: string | undefined
  readonly chain: CaptureChain
  readonly request: typeof SampleRequest.Type | undefined
}

/** Where a sample was saved; the paths begin like the configured one. */
export interface SavedSample {
  readonly id: string
  readonly dir: string
  readonly metaPath: string
  readonly upstreamPath: string
}

/** A sample as the list shows it. */
export interface SampleFacts {
  readonly id: string
  /** Milliseconds since 1970. */
  readonly createdAt: number
  /** `undefined` for one that was saved out of the captures. */
  readonly model: string | undefined
  readonly rounds: number
  /** Size of the recorded replies. */
  readonly bytes: number
}

/** Samples of a list, and how many are read at once. */
const mostListed = 1_000
const readAtOnce = 8

const decodeMeta = Schema.decodeUnknownOption(Schema.fromJsonString(SampleMeta))

const codeOf = ({ reason }: PlatformError.PlatformError): string =>
  Predicate.hasProperty(reason.cause, "code") ? String(reason.cause.code) : reason._tag

/** What a rename says of a name that is taken by a folder with something in it, or by anything that is no folder. */
const takenCodes = new Set(["EEXIST", "ENOTEMPTY", "ENOTDIR"])

const notSaved = (error: PlatformError.PlatformError): GatewayError =>
  gatewayError("internal_error", `The sample could not be written to the folder of samples (${codeOf(error)})`)

const notRemoved = (error: PlatformError.PlatformError): GatewayError =>
  gatewayError("internal_error", `The sample could not be removed from the folder of samples (${codeOf(error)})`)

/** A name that says when, and that nobody guesses. */
const makeId = (now: Date): string =>
  `sample-${now.toISOString().slice(0, 19).replaceAll(/[-:]/g, "").toLowerCase()}-${randomBytes(6).toString("hex")}`

const describe = (id: string, now: Date, bytes: Uint8Array, { chain, request }: NewSample): typeof SampleMeta.Type => ({
  sample_id: id,
  created_at: now.toISOString(),
  protocol: chain[0].protocol,
  chain_key: chain[0].chainKey,
  capture_ids: chain.map((round) => round.id),
  round_count: chain.length,
  request: request ?? null,
  rounds: roundsOf(chain),
  upstream_sha256: hash("sha256", bytes)
})

export class SampleFolder extends Context.Service<SampleFolder, {
  /** Saves a sample. A name that is taken gets `-2`, `-3` and so on behind it. */
  readonly save: (sample: NewSample) => Effect.Effect<SavedSample, GatewayError>
  /** Samples that are there, newest first, 1,000 at most. Links are not followed. */
  readonly list: Effect.Effect<ReadonlyArray<SampleFacts>>
  /** A sample as the list shows it; `undefined` where there is none of that name. */
  readonly describe: (id: string) => Effect.Effect<SampleFacts | undefined>
  /** Deletes a sample; false where there is none of that name. */
  readonly remove: (id: string) => Effect.Effect<boolean, GatewayError>
  /** Reads a sample; `undefined` where there is none of that name, or not all of it. Links are not followed. */
  readonly read: (id: string) => Effect.Effect<Recording | undefined>
}>()("model-gateway/admin/SampleFolder") {
  static readonly make = Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const config = yield* ConfigStore

    const save = Effect.fn("SampleFolder.save")(function*(sample: NewSample) {
      const root = config.unsafeCurrent().samples.dir
      const now = new Date(yield* Clock.currentTimeMillis)
      const wanted = sample.id ?? makeId(now)
      const bytes = Buffer.concat(sample.chain.map((round) => round.bytes))

      /** Gives the sample the first free name. That the rename succeeds, and not a look before it, is what claims one. */
      const claim = (temporary: string, n: number): Effect.Effect<string, PlatformError.PlatformError> =>
        Effect.gen(function*() {
          const id = numbered(wanted, n)
          const dir = path.join(root, id)
          if (yield* fs.exists(dir)) return yield* claim(temporary, n + 1)
          const meta = JSON.stringify(describe(id, now, bytes, sample), undefined, 2)
          yield* fs.writeFileString(path.join(temporary, metaFile), `${meta}\n`)
          return yield* Effect.as(fs.rename(temporary, dir), id).pipe(
            Effect.catch((error) => takenCodes.has(codeOf(error)) ? claim(temporary, n + 1) : Effect.fail(error))
          )
        })

      yield* fs.makeDirectory(root, { recursive: true })
      const id = yield* Effect.acquireUseRelease(
        fs.makeTempDirectory({ directory: root, prefix: ".writing-" }),
        (temporary) =>
          Effect.andThen(
            fs.writeFile(path.join(temporary, upstreamFile), bytes),
            claim(temporary, 1)
          ),
        (temporary, exit) =>
          Exit.isSuccess(exit) ? Effect.void : Effect.ignore(fs.remove(temporary, { recursive: true, force: true }))
      )
      const dir = path.join(root, id)
      const saved: SavedSample = {
        id,
        dir,
        metaPath: path.join(dir, metaFile),
        upstreamPath: path.join(dir, upstreamFile)
      }
      return saved
    }, Effect.mapError(notSaved))

    /** A file that is where its name says, with no link on the way. */
    const readOwn = Effect.fnUntraced(function*(file: string) {
      return (yield* fs.realPath(file)) === file ? Option.some(yield* fs.readFile(file)) : Option.none()
    })

    const root = Effect.suspend(() => fs.realPath(config.unsafeCurrent().samples.dir))

    const readMeta = Effect.fnUntraced(function*(dir: string) {
      const text = Option.map(yield* readOwn(path.join(dir, metaFile)), (bytes) => new TextDecoder().decode(bytes))
      return Option.flatMap(text, decodeMeta)
    })

    const describeSample = Effect.fnUntraced(function*(dir: string) {
      const meta = Option.getOrUndefined(yield* readMeta(dir))
      if (meta === undefined) return undefined
      const facts: SampleFacts = {
        id: path.basename(dir),
        createdAt: Date.parse(meta.created_at),
        model: meta.request?.model,
        rounds: meta.round_count,
        bytes: meta.rounds.reduce((sum, { length }) => sum + length, 0)
      }
      return facts
    }, Effect.orElseSucceed(() => undefined))

    const list = Effect.gen(function*() {
      const dir = yield* root
      const names = (yield* fs.readDirectory(dir)).filter(isSampleId)
      const found = yield* Effect.forEach(names, (name) => describeSample(path.join(dir, name)), {
        concurrency: readAtOnce
      })
      return found.filter((facts) => facts !== undefined)
        .sort((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1)).slice(0, mostListed)
    }).pipe(Effect.orElseSucceed(() => []))

    /** A sample is gone at once and as a whole: it loses its name before its files are removed. */
    const removeSample = Effect.fnUntraced(function*(id: string) {
      const dir = yield* Effect.option(root)
      const found = Option.isSome(dir) && (yield* describeSample(path.join(dir.value, id))) !== undefined
      if (!found) return false
      const doomed = path.join(dir.value, `.removing-${randomBytes(6).toString("hex")}`)
      yield* fs.rename(path.join(dir.value, id), doomed)
      yield* fs.remove(doomed, { recursive: true, force: true })
      return true
    }, Effect.mapError(notRemoved))

    const readSample = Effect.fnUntraced(function*(id: string) {
      const dir = path.join(yield* root, id)
      const meta = yield* readMeta(dir)
      const bytes = yield* readOwn(path.join(dir, upstreamFile))
      if (Option.isNone(meta) || Option.isNone(bytes)) return undefined
      if (hash("sha256", bytes.value) !== meta.value.upstream_sha256) return undefined
      const recording: Recording = {
        protocol: meta.value.protocol,
        rounds: meta.value.rounds.map(({ content_type, length, offset, status_code }) => ({
          status: status_code,
          contentType: content_type ?? undefined,
          bytes: bytes.value.subarray(offset, offset + length)
        }))
      }
      return recording
    }, Effect.orElseSucceed(() => undefined))

    return SampleFolder.of({
      save,
      list,
      describe: (id) =>
        isSampleId(id)
          ? Effect.flatMap(root, (dir) => describeSample(path.join(dir, id))).pipe(
            Effect.orElseSucceed(() => undefined)
          )
          : Effect.undefined,
      remove: (id) => isSampleId(id) ? removeSample(id) : Effect.succeed(false),
      read: (id) => isSampleId(id) ? readSample(id) : Effect.undefined
    })
  })

  static readonly layer: Layer.Layer<SampleFolder, never, ConfigStore | FileSystem.FileSystem | Path.Path> = Layer
    .effect(SampleFolder, SampleFolder.make)

  /** The samples as what the embedded upstream plays again. */
  static readonly layerRecordings: Layer.Layer<never, never, SampleFolder> = Layer.effect(
    Recordings,
    Effect.map(SampleFolder, (folder) => folder.read)
  )
}
