/**
 * The folder of raw samples. Each sample is a folder directly below it, and links are not followed, so that nothing outside is
 * read or written.
 *
 * A sample appears as a whole: it is written to a folder of another name, which is then renamed.
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
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { hash, randomBytes } from "node:crypto"
import { ConfigStore } from "../config/ConfigStore.ts"
import { readRegularFile } from "../config/regularFile.ts"
import { protocolNames, type UpstreamProtocol } from "../contracts/drivers.ts"
import { type GatewayError, gatewayError, invalidRequest } from "../domain/GatewayError.ts"
import type { CaptureChain } from "./CapturedRound.ts"
import { namedModel } from "./capturePreview.ts"

/** Bounds the characters of a sample id. */
const longestId = 64

/** Names of devices, which no folder on Windows can have. */
const reserved = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/

/** Whether a folder may have this name. */
const isSampleId = (name: string): boolean =>
  name.length <= longestId && /^[a-z0-9_-](?:[a-z0-9._-]*[a-z0-9_-])?$/.test(name) && !reserved.test(name)

/** Whether a text is a path: it has a separator, a drive or a control character, or is a step upwards. */
const isPath = (text: string): boolean => /[/\\\p{Cc}]|^[a-z]:/iu.test(text) || /^\.+$/.test(text.trim())

const refused = (rule: string) => Result.fail(invalidRequest(`sample_id ${rule}`, "sample_id"))

/**
 * The sample id for a text of the caller: lower case, other characters than `a-z0-9._-` as `-`, no dot at either end, at most
 * 64 characters. Fails for a path, for a device, and if no letter or digit is left.
 */
export const cleanSampleId = (text: string): Result.Result<string, GatewayError> => {
  if (isPath(text)) return refused("must be a name, not a path")
  const cleaned = text.trim().toLowerCase().replaceAll(/[^a-z0-9._-]+/g, "-").replace(/^\.+/, "").slice(0, longestId)
    .replace(/\.+$/, "")
  if (!/[a-z0-9]/.test(cleaned)) return refused("must have a letter from a to z or a digit")
  return isSampleId(cleaned) ? Result.succeed(cleaned) : refused("must not be the name of a device")
}

/** The n-th id to try: the id itself, then with `-2`, `-3` and so on, shortened to the longest length. */
const numbered = (id: string, n: number): string => {
  if (n === 1) return id
  const suffix = `-${n}`
  return `${id.slice(0, longestId - suffix.length).replace(/\.+$/, "")}${suffix}`
}

/** A position in a file. Samples may be copied or edited by hand, so an impossible number makes the sample invalid. */
const FilePlace = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 2 ** 40 }))

const RoundMeta = Schema.Struct({
  capture_id: Schema.String,
  /** `completion` or `continue`. */
  label: Schema.String,
  url: Schema.String,
  /** 0 without a response. */
  status_code: Schema.Int,
  content_type: Schema.NullOr(Schema.String),
  request_body: Schema.String,
  /** Position and length of the round's bytes in `upstream.stream.sse`. */
  offset: FilePlace,
  length: FilePlace,
  /** The bytes are only the beginning: the response exceeded the limit of the captures. */
  truncated: Schema.Boolean,
  /** False if the round was still running when it was saved. */
  complete: Schema.Boolean
})

/** The chat-completions request of a captured sample. */
const SampleRequest = Schema.Struct({
  model: Schema.String,
  messages: Schema.Json,
  stream: Schema.Boolean
})

/** `meta.json` of a sample. */
const SampleMeta = Schema.Struct({
  sample_id: Schema.String,
  /** ISO 8601. */
  created_at: Schema.String.check(Schema.makeFilter((text) => Number.isFinite(Date.parse(text)))),
  protocol: Schema.Literals(protocolNames),
  chain_key: Schema.String,
  capture_ids: Schema.Array(Schema.String),
  round_count: Schema.Int,
  /** `null` for a sample that was saved from the captures. */
  request: Schema.NullOr(SampleRequest),
  rounds: Schema.Array(RoundMeta),
  /** SHA-256 of `upstream.stream.sse`, in hex. */
  upstream_sha256: Schema.String
}).annotate({ identifier: "SampleMeta" })

/** The `rounds` of a chain whose bytes are written one round after another. */
const roundsOf = (chain: CaptureChain): typeof SampleMeta.Type.rounds => {
  let offset = 0
  return chain.map((round) => {
    const meta = {
      capture_id: round.id,
      label: round.label,
      url: round.url,
      status_code: round.status,
      content_type: round.contentType ?? null,
      request_body: round.requestBody,
      offset,
      length: round.bytes.length,
      truncated: round.truncated,
      complete: round.closed
    }
    offset += round.bytes.length
    return meta
  })
}

const metaFile = "meta.json"
const upstreamFile = "upstream.stream.sse"

/** One recorded response of the upstream. */
export interface RecordedRound {
  /** HTTP status; 0 without a response. */
  readonly status: number
  readonly contentType: string | undefined
  readonly bytes: Uint8Array
}

/** The responses to a completion and to each of its continues, in order. */
export interface Recording {
  readonly protocol: UpstreamProtocol
  readonly rounds: ReadonlyArray<RecordedRound>
}

/** A sample to save. */
interface NewSample {
  /** A result of `cleanSampleId`; `undefined` for a generated id. */
  readonly id: string | undefined
  readonly chain: CaptureChain
  readonly request: typeof SampleRequest.Type | undefined
}

/** The paths of a saved sample; they begin with the configured folder. */
export interface SavedSample {
  readonly id: string
  readonly dir: string
  readonly metaPath: string
  readonly upstreamPath: string
}

/** A sample in lists. */
interface SampleFacts {
  readonly id: string
  /** Milliseconds since 1970. */
  readonly createdAt: number
  /** `undefined` for a sample that was saved from the captures. */
  readonly model: string | undefined
  /** The model that the upstream was asked for. */
  readonly asked: string | null
  /** HTTP status of the last round; 0 before it. */
  readonly status: number
  readonly rounds: number
  /** Size of the recorded replies. */
  readonly bytes: number
}

/** The most bytes of a file of a sample. A sample with a longer one counts as incomplete. */
const longestFile = 256 * 1024 * 1024

/** Bounds the samples of a list, and those that are read concurrently. */
const mostListed = 1_000
const readAtOnce = 8

const decodeMeta = Schema.decodeUnknownOption(Schema.fromJsonString(SampleMeta))

const codeOf = ({ reason }: PlatformError.PlatformError): string =>
  Predicate.hasProperty(reason.cause, "code") ? String(reason.cause.code) : reason._tag

/** Error codes of a rename to a name that is taken, by a folder that is not empty or by a file. */
const takenCodes = new Set(["EEXIST", "ENOTEMPTY", "ENOTDIR"])

const notSaved = (error: PlatformError.PlatformError): GatewayError =>
  gatewayError("internal_error", `The sample could not be written to the folder of samples (${codeOf(error)})`)

const notRemoved = (error: PlatformError.PlatformError): GatewayError =>
  gatewayError("internal_error", `The sample could not be removed from the folder of samples (${codeOf(error)})`)

/** A generated id: the time, and a random suffix that cannot be guessed. */
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
  /** Saves a sample. A taken id gets a suffix: `-2`, `-3` and so on. */
  readonly save: (sample: NewSample) => Effect.Effect<SavedSample, GatewayError>
  /** The saved samples, newest first, 1,000 at most. */
  readonly list: Effect.Effect<ReadonlyArray<SampleFacts>>
  /** A sample in lists; `undefined` for an unknown id. */
  readonly describe: (id: string) => Effect.Effect<SampleFacts | undefined>
  /** Deletes a sample; false for an unknown id. */
  readonly remove: (id: string) => Effect.Effect<boolean, GatewayError>
  /** Reads a sample; `undefined` for an unknown id or an incomplete sample. */
  readonly read: (id: string) => Effect.Effect<Recording | undefined>
}>()("model-gateway/admin/SampleFolder") {
  static readonly make = Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const config = yield* ConfigStore

    const save = Effect.fn("SampleFolder.save")(function*(sample: NewSample) {
      const root = config.now().samples.dir
      const now = new Date(yield* Clock.currentTimeMillis)
      const wanted = sample.id ?? makeId(now)
      const bytes = Buffer.concat(sample.chain.map((round) => round.bytes))

      /** Gives the sample the first free name. Only the rename claims a name: another process may take it before. */
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

    /** Reads a file, unless its path has a link. */
    const readOwn = Effect.fnUntraced(function*(file: string) {
      return (yield* fs.realPath(file)) === file
        ? Option.some(yield* readRegularFile(file, longestFile))
        : Option.none()
    })

    const root = Effect.suspend(() => fs.realPath(config.now().samples.dir))

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
        asked: namedModel(meta.rounds[0]?.request_body ?? ""),
        status: meta.rounds.at(-1)?.status_code ?? 0,
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

    /** The sample is renamed before its files are removed, so that it disappears as a whole. */
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
}
