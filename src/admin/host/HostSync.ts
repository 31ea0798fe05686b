/**
 * The sync of the configuration to the hosting platform, step by step.
 *
 * Every step may be repeated, so that a sync which breaks off is mended by the next one. Only a whole one counts as a sync.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { setField } from "../../config/edit.ts"
import { type RawConfig, stringifyConfig } from "../../config/json.ts"
import { type GatewayError, gatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { resolveModel } from "../../domain/models.ts"
import { AccountTests } from "../accounts/AccountTests.ts"
import { AdminEnvironment } from "../AdminEnvironment.ts"
import { lastingOf } from "../changes.ts"
import { savedOr } from "../configErrors.ts"
import { headerText } from "../headerText.ts"
import type { HostConfigReply, HostStatusReply, HostSyncReply, HostSyncRequest } from "./Api.ts"
import { givenFields, knownCredentials } from "./credentials.ts"
import { connectPlatform, gitSourceOf, type PlatformCredentials, type PlatformFailure } from "./platform.ts"

/** The platform's variable that holds the configuration (spec "What the service does"). */
const variable = "GATEWAY_CONFIG_JSON"

/** The steps of a sync in their order, each with what it is called when it fails and once it is done. */
const steps = {
  list_variables: ["The project's variables could not be listed", "the project's variables were listed"],
  validate_accounts: ["The accounts could not be tested", "the accounts were tested"],
  write_config: [`${variable} could not be written`, `${variable} was written`],
  read_project: ["The project could not be read", "the project was read"],
  start_deployment: ["The deployment could not be started", "a deployment was started"],
  record_sync: ["The sync could not be recorded here", "the sync was recorded"]
} as const

/** A step of a sync. */
export type Step = keyof typeof steps

/** How far a sync has come. */
interface Progress {
  readonly completed: Array<Step>
  current: Step | undefined
}

/** Steps that change something at the platform; whether they did is not known when their answer does not come. */
const changing: ReadonlySet<Step> = new Set<Step>(["write_config", "start_deployment"])

/** A sync that broke off. */
export class HostSyncFailure extends Schema.TaggedError<HostSyncFailure>()("HostSyncFailure", {
  status: Schema.Int,
  step: Schema.String,
  completed: Schema.Array(Schema.String),
  message: Schema.String
}) {}

const doneBefore = (completed: ReadonlyArray<Step>): string =>
  completed.length === 0
    ? "Nothing was done before it."
    : `Done before it: ${completed.map((step) => steps[step][1]).join(", ")}.`

const failure = (step: Step, completed: ReadonlyArray<Step>, status: number, why: string): HostSyncFailure =>
  new HostSyncFailure({
    status,
    step,
    completed: [...completed],
    message: `${steps[step][0]}: ${why.replace(/\.$/, "")}. ${doneBefore(completed)} The next sync completes it.`
  })

const platformFailed = (step: Step, completed: ReadonlyArray<Step>, { kind, message, status = 0 }: PlatformFailure) =>
  failure(
    step,
    completed,
    status >= 400 && status <= 599 ? status : 503,
    kind === "refused" || !changing.has(step) ? message : `${message}, and it may have happened all the same`
  )

/** What is noted of a sync, here and in what is synced. */
interface Synced {
  readonly last_synced_hash: string
  /** Unix seconds. */
  readonly last_sync_time: number
}

/** Accounts that are tested at once, as by test-all (spec "Limits"). */
const testsAtOnce = 5
const testModel = "upstream-chat"

const running = gatewayError("conflict", "Another sync is running")

const missing = (field: "host_token" | "project_id", environment: string) =>
  invalidRequest(`${field} is required: neither the request, nor ${environment}, nor an earlier sync gives one`, field)

/** Dots alone are steps in a path, however they are written there: the configuration would go to another address. */
const isPathSegment = (text: string): boolean => text.isWellFormed() && text !== "." && text !== ".."

export class HostSync extends Context.Service<HostSync, {
  /** What is known without a request. */
  readonly known: Effect.Effect<typeof HostConfigReply.Type>
  /** Syncs the configuration in effect; one sync at a time. `requestId`: id of the request, for captures of account tests. */
  readonly sync: (
    request: typeof HostSyncRequest.Type,
    requestId: string
  ) => Effect.Effect<typeof HostSyncReply.Type, HostSyncFailure | GatewayError>
  /** How far a draft, or else the configuration in effect, is from what was synced last. */
  readonly status: (draft: RawConfig | undefined) => Effect.Effect<typeof HostStatusReply.Type>
}>()("model-gateway/admin/HostSync") {
  static readonly make = Effect.gen(function*() {
    const client = yield* HttpClient.HttpClient
    const { hosting } = yield* AdminEnvironment
    const store = yield* ConfigStore
    const tests = yield* AccountTests
    const one = yield* Semaphore.make(1)

    const credentialsFor = Effect.fnUntraced(function*(request: typeof HostSyncRequest.Type) {
      const { projectId, teamId, token } = knownCredentials(request, hosting, (yield* store.current).host)
      if (hosting.apiUrl === undefined) {
        return yield* invalidRequest("HOST_API_URL is not set: there is no platform to sync to")
      }
      if (token === undefined) return yield* missing("host_token", "HOST_TOKEN")
      if (projectId === undefined) return yield* missing("project_id", "HOST_PROJECT_ID")
      yield* Effect.fromResult(headerText(Redacted.value(token), "host_token"))
      if (!isPathSegment(projectId)) {
        return yield* invalidRequest("project_id must be a project's id or name", "project_id")
      }
      const credentials: PlatformCredentials = { token, projectId, teamId }
      return { apiUrl: hosting.apiUrl, credentials }
    })

    const validate = Effect.fnUntraced(function*(requestId: string) {
      const { accounts, model_table } = yield* store.current
      const model = resolveModel(model_table, testModel)!
      const results = yield* Effect.forEach(
        accounts,
        ({ identifier }) => tests.test({ identifier, model, modelName: testModel, message: "", requestId }),
        { concurrency: testsAtOnce }
      )
      return {
        validated: results.filter((result) => result.success).length,
        failed: results.filter((result) => !result.success).map((result) => result.account)
      }
    })

    /** Notes what was synced, and keeps the credentials that are to be kept. */
    const record = Effect.fnUntraced(function*(
      { last_sync_time, last_synced_hash }: Synced,
      credentials: ReturnType<typeof givenFields> | undefined
    ) {
      const { project_id, team_id, token } = credentials ?? {}
      return yield* store.update((raw, config) => {
        const fields: ReadonlyArray<readonly [string, Schema.Json | undefined]> = [
          ["last_synced_hash", last_synced_hash],
          ["last_sync_time", last_sync_time],
          ...(token === undefined ? [] : [["token", token] as const]),
          ...(project_id === undefined ? [] : [["project_id", project_id] as const]),
          // The team of another project must not stay.
          ...(team_id !== undefined || (project_id !== undefined && project_id !== config.host.project_id)
            ? [["team_id", team_id] as const]
            : [])
        ]
        return Effect.succeed(fields.reduce((next, [name, value]) => setField(next, ["host", name], value), raw))
      })
    })

    const run = Effect.fnUntraced(function*(
      request: typeof HostSyncRequest.Type,
      requestId: string,
      progress: Progress
    ) {
      const { apiUrl, credentials } = yield* credentialsFor(request)
      const platform = connectPlatform(client, apiUrl, credentials)
      const step = <A, E>(
        name: Step,
        effect: Effect.Effect<A, E>,
        failed: (error: E) => HostSyncFailure
      ): Effect.Effect<A, HostSyncFailure> =>
        Effect.suspend(() => {
          progress.current = name
          return Effect.mapError(effect, failed)
        }).pipe(
          Effect.tap(() => Effect.sync(() => progress.completed.push(name)))
        )
      const ask = <A>(name: Step, effect: Effect.Effect<A, PlatformFailure>) =>
        step(name, effect, (error) => platformFailed(name, progress.completed, error))

      const variables = yield* ask("list_variables", platform.variables)
      const { failed, validated } = request.auto_validate ?? true
        ? yield* ask("validate_accounts", validate(requestId))
        : { failed: [], validated: 0 }
      const { config } = yield* store.exportConfig
      const synced: Synced = {
        last_synced_hash: yield* store.hashOf(config),
        last_sync_time: Math.floor((yield* Clock.currentTimeMillis) / 1000)
      }
      // The instance that is deployed from it knows that it was synced, and when.
      const json = yield* stringifyConfig({ ...config, host: { ...synced } }, "compact")
      const base64 = Buffer.from(json).toString("base64")
      yield* ask("write_config", platform.writeVariable(variables, variable, base64))
      const project = yield* ask("read_project", platform.project)
      const source = gitSourceOf(project)
      const deployment = source === undefined
        ? { manual_deploy_required: true }
        : { deployment_url: (yield* ask("start_deployment", platform.deploy(project, source))) ?? null }

      const kept = request.save_credentials ?? true ? givenFields(request) : undefined
      const saved = yield* step(
        "record_sync",
        savedOr(Effect.uninterruptible(record(synced, kept))),
        (error) => failure("record_sync", progress.completed, error.status, error.message)
      )
      const message = source === undefined
        ? "The configuration was synced; the project has no git repository, so deploy it yourself for it to take effect"
        : "The configuration was synced and a deployment was started"
      const reply: typeof HostSyncReply.Type = {
        success: true,
        validated_accounts: validated,
        failed_accounts: failed,
        message: failed.length === 0 ? message : `${message}; ${failed.length} accounts failed their test`,
        ...deployment,
        saved_credentials: Object.entries(kept ?? {})
          .filter(([, value]) => value !== undefined)
          .map(([name]) => name === "token" ? "host_token" : name),
        ...lastingOf(saved)
      }
      return reply
    })

    return HostSync.of({
      known: Effect.map(store.current, ({ host }) => {
        const { projectId, teamId, token } = knownCredentials({}, hosting, host)
        return { has_token: token !== undefined, project_id: projectId ?? "", team_id: teamId ?? null }
      }),
      sync: (request, requestId) =>
        Effect.suspend(() => {
          const progress: Progress = { completed: [], current: undefined }
          return run(request, requestId, progress).pipe(
            Effect.onInterrupt(() =>
              progress.current === undefined ? Effect.void : Effect.logWarning(
                `A sync to the hosting platform was left at ${progress.current}. ${doneBefore(progress.completed)}`
              )
            ),
            one.withPermitsIfAvailable(1),
            Effect.flatMap(Option.match({ onNone: () => Effect.fail(running), onSome: Effect.succeed }))
          )
        }),
      status: Effect.fnUntraced(function*(draft) {
        const { host } = yield* store.current
        const config_hash = yield* store.configHash
        const draft_hash = draft === undefined ? config_hash : yield* store.hashOf(draft)
        const last_synced_hash = host.last_synced_hash ?? ""
        return {
          synced: config_hash === last_synced_hash,
          last_sync_time: host.last_sync_time ?? 0,
          has_synced_before: last_synced_hash !== "",
          env_backed: store.source.env_backed,
          config_hash,
          last_synced_hash,
          draft_hash,
          draft_differs: draft_hash !== last_synced_hash
        }
      })
    })
  })

  static readonly layer: Layer.Layer<HostSync, never, AccountTests | ConfigStore | HttpClient.HttpClient> = Layer
    .effect(HostSync, HostSync.make)
}
