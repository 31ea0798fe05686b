/**
 * A client of the hosting platform's REST API. Tokens are sent only in the `Authorization` header.
 */
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import { isNullish } from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { redactMessage } from "../../domain/redact.ts"
import { optional } from "../../domain/schemas.ts"

/** A failed call. */
export class PlatformFailure extends Schema.TaggedError<PlatformFailure>()("PlatformFailure", {
  /** `refused`: the platform responded with an error. For other kinds it is unknown whether the call had an effect. */
  kind: Schema.Literals(["refused", "unreachable", "timeout", "malformed"]),
  /** HTTP status of the response, if there was one. */
  status: Schema.optionalKey(Schema.Int),
  message: Schema.String
}) {}

/** The token and the project of all calls. */
export interface PlatformCredentials {
  readonly token: Redacted.Redacted<string>
  readonly projectId: string
  readonly teamId: string | undefined
}

const Variables = Schema.Struct({
  envs: Schema.Array(Schema.Struct({
    id: Schema.String,
    key: Schema.String,
    target: optional(Schema.Union([Schema.String, Schema.Array(Schema.String)]))
  }))
})

const Project = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  /** The repository that it is deployed from. */
  link: optional(Schema.Struct({
    type: optional(Schema.String),
    repoId: optional(Schema.Union([Schema.Number, Schema.String])),
    projectId: optional(Schema.Union([Schema.Number, Schema.String])),
    uuid: optional(Schema.String),
    workspaceUuid: optional(Schema.String),
    productionBranch: optional(Schema.String)
  }))
})

const Deployment = Schema.Struct({ url: optional(Schema.String) })

/** A variable of the project's environment, without its value. */
type Variable = typeof Variables.Type["envs"][number]
type Project = typeof Project.Type

interface Platform {
  readonly variables: Effect.Effect<ReadonlyArray<Variable>, PlatformFailure>
  /** Sets a variable for production: changes the one in `known` that is in effect there, or adds one. */
  readonly writeVariable: (
    known: ReadonlyArray<Variable>,
    key: string,
    value: string
  ) => Effect.Effect<void, PlatformFailure>
  readonly project: Effect.Effect<Project, PlatformFailure>
  /** Starts a production deployment from the repository; returns its address if the platform does. */
  readonly deploy: (project: Project, source: GitSource) => Effect.Effect<string | undefined, PlatformFailure>
}

/** The source of a deployment, in the fields of the platform. */
type GitSource = Readonly<Record<string, string | number>>

/** The source of the project's production; `undefined` without a repository that a deployment can name. */
export const gitSourceOf = ({ link }: Project): GitSource | undefined => {
  const type = link?.type
  if (isNullish(link) || typeof type !== "string") return undefined
  const ref = link.productionBranch ?? "main"
  const { projectId, repoId, uuid, workspaceUuid } = link
  if (type === "gitlab") return isNullish(projectId) ? undefined : { type, projectId, ref }
  if (type === "bitbucket") {
    return isNullish(uuid)
      ? undefined
      : { type, repoUuid: uuid, ...(isNullish(workspaceUuid) ? {} : { workspaceUuid }), ref }
  }
  return isNullish(repoId) ? undefined : { type, repoId, ref }
}

/** Time limit of a call (behaviour "Host sync"). */
const longestCall = "30 seconds"

const parse = (text: string): Result.Result<unknown, unknown> => Result.try((): unknown => JSON.parse(text))

const ErrorBody = Schema.Union([
  Schema.Struct({ error: Schema.Struct({ message: Schema.String }) }),
  Schema.Struct({ message: Schema.String })
])
const decodeError = Schema.decodeUnknownResult(ErrorBody)

/** The platform's error message, without secrets. */
const messageOf = (body: Result.Result<unknown, unknown>, secret: string): string | undefined => {
  const decoded = Result.isSuccess(body) ? decodeError(body.success) : undefined
  if (decoded === undefined || Result.isFailure(decoded)) return undefined
  const message = "error" in decoded.success ? decoded.success.error.message : decoded.success.message
  return redactMessage(message.replaceAll(secret, "[token]"))
}

const targetsOf = ({ target }: Variable): ReadonlyArray<string> => typeof target === "string" ? [target] : target ?? []

/** Makes a client; `apiUrl` has no trailing slash. */
export const connectPlatform = (
  client: HttpClient.HttpClient,
  apiUrl: string,
  { projectId, teamId, token }: PlatformCredentials
): Platform => {
  const secret = Redacted.value(token)

  const call = <S extends Schema.ConstraintDecoder<unknown>>(
    reply: S,
    request: HttpClientRequest.HttpClientRequest
  ): Effect.Effect<S["Type"], PlatformFailure> => {
    const decode = Schema.decodeUnknownResult(reply)
    const owned = teamId === undefined ? request : HttpClientRequest.setUrlParam(request, "teamId", teamId)
    return client.execute(HttpClientRequest.bearerToken(HttpClientRequest.acceptJson(owned), token)).pipe(
      Effect.flatMap((response) =>
        Effect.map(response.text, (text) => ({ status: response.status, body: parse(text) }))
      ),
      Effect.mapError(() => new PlatformFailure({ kind: "unreachable", message: "the platform cannot be reached" })),
      Effect.timeoutOrElse({
        duration: longestCall,
        orElse: () => new PlatformFailure({ kind: "timeout", message: `no answer within ${longestCall}` })
      }),
      Effect.flatMap(({ body, status }) => {
        if (status < 200 || status >= 300) {
          const message = messageOf(body, secret) ?? `the platform answers with HTTP ${status}`
          return Effect.fail(new PlatformFailure({ kind: "refused", status, message }))
        }
        const decoded = Result.isSuccess(body) ? decode(body.success) : body
        return Result.isSuccess(decoded)
          ? Effect.succeed(decoded.success)
          : Effect.fail(new PlatformFailure({ kind: "malformed", message: "the platform's answer is not understood" }))
      })
    )
  }

  const path = `/projects/${encodeURIComponent(projectId)}`
  const get = (url: string) => HttpClientRequest.get(`${apiUrl}${url}`)
  const send = (request: HttpClientRequest.HttpClientRequest, body: unknown) =>
    HttpClientRequest.bodyJsonUnsafe(request, body)

  return {
    variables: Effect.map(call(Variables, get(`/v9${path}/env`)), ({ envs }) => envs),
    writeVariable: (known, key, value) => {
      const entries = known.filter((variable) => variable.key === key)
      const current = entries.find((variable) => targetsOf(variable).includes("production"))
      if (current !== undefined) {
        const request = HttpClientRequest.patch(`${apiUrl}/v9${path}/env/${encodeURIComponent(current.id)}`)
        return Effect.asVoid(call(Schema.Unknown, send(request, { value })))
      }
      // Previews keep a variable of their own.
      const target = entries.length === 0 ? ["production", "preview"] : ["production"]
      const request = HttpClientRequest.setUrlParam(
        HttpClientRequest.post(`${apiUrl}/v10${path}/env`),
        "upsert",
        "true"
      )
      return Effect.asVoid(call(Schema.Unknown, send(request, { key, value, type: "encrypted", target })))
    },
    project: call(Project, get(`/v9${path}`)),
    deploy: (project, gitSource) => {
      // Without `forceNew` the platform may reuse an earlier deployment of the commit, with the older configuration.
      const request = HttpClientRequest.setUrlParam(
        HttpClientRequest.post(`${apiUrl}/v13/deployments`),
        "forceNew",
        "1"
      )
      const body = { name: project.name, project: project.id, target: "production", gitSource }
      return Effect.map(
        call(Deployment, send(request, body)),
        ({ url }) => isNullish(url) || url === "" ? undefined : /^https?:/.test(url) ? url : `https://${url}`
      )
    }
  }
}
