/**
 * The sync of the configuration to the hosting platform, step by step.
 *
 * Every step is idempotent: after a failure the next sync completes the work. Only a complete sync is recorded.
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
import { ConfigOrigin } from "../../config/ConfigOrigin.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { ConfigTransfer } from "../../config/ConfigTransfer.ts"
import type { HostEnvironment } from "../../config/Environment.ts"
import type { GatewayConfig } from "../../config/GatewayConfig.ts"
import { type RawConfig, stringifyConfig } from "../../config/json.ts"
import { withoutOwnFields } from "../../config/rawConfig.ts"
import { type GatewayError, gatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { given, headerText } from "../../domain/givenText.ts"
import { resolveRoute } from "../../domain/routes.ts"
import { AccountTests } from "../accounts/AccountTests.ts"
import { AdminEnvironment } from "../AdminEnvironment.ts"
import { lastingOf, savedOr, setFields } from "../changes.ts"
import type { HostConfigReply, HostStatusReply, HostSyncReply, HostSyncRequest } from "./Api.ts"
import { connectPlatform, gitSourceOf, type PlatformCredentials, type PlatformFailure } from "./platform.ts"

/** The platform's variable that holds the configuration (spec "What the service does"). */
const variable = "GATEWAY_CONFIG_JSON"

/** The steps in their order, each with its texts for a failure and for the list of completed steps. */
const steps = {
  list_variables: ["The project's variables could not be listed", "the project's variables were listed"],
  validate_accounts: ["The accounts could not be tested", "the accounts were tested"],
  write_config: [`${variable} could not be written`, `${variable} was written`],
  read_project: ["The project could not be read", "the project was read"],
  start_deployment: ["The deployment could not be started", "a deployment was started"],
  record_sync: ["The sync could not be recorded here", "the sync was recorded"]
} as const

type Step = keyof typeof steps

interface Progress {
  readonly completed: Array<Step>
  current: Step | undefined
}

/** Steps that change the platform: without a response it is unknown whether they did. */
const changing: ReadonlySet<Step> = new Set<Step>(["write_config", "start_deployment"])

/** A failed sync. */
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

/** The record of a sync, kept here and in the synced configuration. */
interface Synced {
  readonly last_synced_hash: string
  /** Unix seconds. */
  readonly last_sync_time: number
}

const testModel = "upstream-chat"

const running = gatewayError("conflict", "Another sync is running")

const missing = (field: "host_token" | "project_id", environment: string) =>
  invalidRequest(`${field} is required: neither the request, nor ${environment}, nor an earlier sync gives one`, field)

/** Whether a text is one segment of a path: dots alone would send the configuration to another address. */
const isPathSegment = (text: string): boolean => text.isWellFormed() && text !== "." && text !== ".."

type SavedHost = GatewayConfig["host"]

/** Placeholder for a credential that the gateway has already. */
const preconfigured = "__USE_PRECONFIG__"

const textOf = (text: string | null | undefined): string | undefined => {
  const trimmed = given(text)
  return trimmed === preconfigured ? undefined : trimmed
}

const savedToken = ({ token }: SavedHost) => token !== undefined && Redacted.value(token) !== "" ? token : undefined

/** The credentials in the request, by the names of the configuration's `host` group. */
const givenFields = (request: typeof HostSyncRequest.Type) => ({
  token: textOf(request.host_token),
  project_id: textOf(request.project_id),
  team_id: textOf(request.team_id)
})

/** For each field the request, then the environment, then the last sync. A saved team is used only with its project. */
const knownCredentials = (
  request: typeof HostSyncRequest.Type,
  environment: HostEnvironment,
  saved: SavedHost
) => {
  const { project_id, team_id, token } = givenFields(request)
  const projectId = project_id ?? environment.projectId ?? textOf(saved.project_id)
  return {
    token: token === undefined ? environment.token ?? savedToken(saved) : Redacted.make(token),
    projectId,
    teamId: team_id ?? environment.teamId ?? (projectId === saved.project_id ? textOf(saved.team_id) : undefined)
  }
}

export class HostSync extends Context.Service<HostSync, {
  /** The credentials that are known without a request. */
  readonly known: Effect.Effect<typeof HostConfigReply.Type>
  /** Syncs the configuration in effect; one sync at a time. Captures of account tests have the `requestId`. */
  readonly sync: (
    request: typeof HostSyncRequest.Type,
    requestId: string
  ) => Effect.Effect<typeof HostSyncReply.Type, HostSyncFailure | GatewayError>
  /** Compares a draft, or else the configuration in effect, with the last sync. */
  readonly status: (draft: RawConfig | undefined) => Effect.Effect<typeof HostStatusReply.Type>
}>()("model-gateway/admin/HostSync") {
  static readonly make = Effect.gen(function*() {
    const client = yield* HttpClient.HttpClient
    const { hosting } = yield* AdminEnvironment
    const store = yield* ConfigStore
    const { source: { env_backed } } = yield* ConfigOrigin
    const { configHash, hashOf } = yield* ConfigTransfer
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
      const model = resolveRoute((yield* store.current).route_table, "usual", testModel)
      const results = yield* tests.testAll({ model, modelName: testModel, requestId })
      return {
        validated: results.filter((result) => result.success).length,
        failed: results.filter((result) => !result.success).map((result) => result.account)
      }
    })

    /** Records the sync, and saves `credentials`. The saved team of another project is removed. */
    const record = (synced: Synced, { project_id, team_id, token }: Partial<ReturnType<typeof givenFields>>) =>
      store.update((raw, { host }) =>
        Effect.succeed(setFields(raw, "host", {
          ...synced,
          ...(token === undefined ? {} : { token }),
          ...(project_id === undefined ? {} : { project_id }),
          ...(team_id !== undefined || (project_id !== undefined && project_id !== host.project_id) ? { team_id } : {})
        }))
      )

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
      const config = withoutOwnFields(yield* store.currentRaw)
      const synced: Synced = {
        last_synced_hash: yield* hashOf(config),
        last_sync_time: Math.floor((yield* Clock.currentTimeMillis) / 1000)
      }
      // The deployed instance gets the record of this sync too.
      const json = yield* stringifyConfig({ ...config, host: { ...synced } }, "compact")
      const base64 = Buffer.from(json).toString("base64")
      yield* ask("write_config", platform.writeVariable(variables, variable, base64))
      const project = yield* ask("read_project", platform.project)
      const source = gitSourceOf(project)
      const deployment = source === undefined
        ? { manual_deploy_required: true }
        : { deployment_url: (yield* ask("start_deployment", platform.deploy(project, source))) ?? null }

      const kept = request.save_credentials ?? true ? givenFields(request) : {}
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
        saved_credentials: Object.entries(kept)
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
        const config_hash = yield* configHash
        const draft_hash = draft === undefined ? config_hash : yield* hashOf(draft)
        const last_synced_hash = host.last_synced_hash ?? ""
        return {
          synced: config_hash === last_synced_hash,
          last_sync_time: host.last_sync_time ?? 0,
          has_synced_before: last_synced_hash !== "",
          env_backed,
          config_hash,
          last_synced_hash,
          draft_hash,
          draft_differs: draft_hash !== last_synced_hash
        }
      })
    })
  })

  static readonly layer: Layer.Layer<
    HostSync,
    never,
    AccountTests | ConfigOrigin | ConfigStore | ConfigTransfer | HttpClient.HttpClient
  > = Layer.effect(HostSync, HostSync.make)
}
