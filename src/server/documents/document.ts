/**
 * Completes the OpenAPI document that `HttpApi` generates. Bodies are decoded leniently, so the document allows additional
 * fields. Each operation lists exactly the statuses that it may return.
 */
import * as Context from "effect/Context"
import * as HttpApi from "effect/http-api/HttpApi"
import type * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import type * as OpenApi from "effect/http-api/OpenApi"
import * as Option from "effect/Option"
import { roleOf } from "../../admin/roles.ts"
import type { ErrorShape } from "../../contracts/shared/errorShapes.ts"
import { faultNames } from "../../domain/fault.ts"
import { type ErrorCode, errorTable, gatewayError } from "../../domain/GatewayError.ts"
import { passedStatuses } from "../../domain/passedError.ts"
import { type Documentation, Documented } from "../../http/documented.ts"
import { type Access, policyOf } from "../../http/EndpointPolicy.ts"

type Spec = OpenApi.OpenAPISpec
type PathItem = Spec["paths"][string]
type SpecOperation = NonNullable<PathItem["get"]>
type Content = NonNullable<SpecOperation["responses"][number]["content"]>

const securitySchemes: Spec["components"]["securitySchemes"] = {
  bearer: {
    type: "http",
    scheme: "bearer",
    description: "A gateway key, or a direct token: the client's own credential for the default upstream."
  },
  apiKey: { type: "apiKey", in: "header", name: "x-api-key", description: "The same, without `Bearer`." },
  genApiKey: { type: "apiKey", in: "header", name: "x-gen-api-key", description: "For the Gemini API." },
  key: { type: "apiKey", in: "query", name: "key", description: "For the Gemini API." },
  queryApiKey: { type: "apiKey", in: "query", name: "api_key", description: "For the Gemini API." },
  admin: { type: "http", scheme: "bearer", description: "The admin key, or a JWT of `POST /admin/login`." },
  session: {
    type: "apiKey",
    in: "cookie",
    name: "gateway_session",
    description: "Set by `POST /admin/session`; counts on requests of the gateway's own origin only."
  },
  jwt: { type: "http", scheme: "bearer", bearerFormat: "JWT", description: "A JWT of `POST /admin/login`." }
}

const requirements: { readonly [A in Access]: ReadonlyArray<string> } = {
  none: [],
  business: ["bearer", "apiKey"],
  anyForm: ["bearer", "apiKey", "genApiKey", "key", "queryApiKey"],
  admin: ["admin", "session"],
  key: ["admin"],
  jwt: ["jwt"]
}

const targetAccount: SpecOperation["parameters"][number] = {
  name: "X-Gateway-Target-Account",
  in: "header",
  required: false,
  schema: { type: "string" },
  description: "Email or mobile of the managed account to use."
}

const requestIdHeader = {
  description: "Id of the request, in the gateway's log too.",
  schema: { type: "string" },
  required: true
}
const faultOfError = {
  description:
    "Who has to act: the client, the gateway's operator, the upstream, or the operator for an account of the upstream.",
  schema: { type: "string", enum: faultNames },
  required: true
}
const retryAfterHeader = {
  description: "Whole seconds after which another attempt makes sense.",
  schema: { type: "integer" },
  required: false
}

/** Describes a stream by the shape of one event, without the library's error events. */
const describeContent = (content: Content): Content =>
  Object.fromEntries(
    Object.entries(content).map(([type, { schema }]) => [
      type,
      type === "text/event-stream"
        ? { schema: { description: "Server-sent events, each with fields of this shape.", ...schema } }
        : { schema }
    ])
  )

/** The statuses of errors, with their codes: without any for errors that are a server's own. */
const statusesOf = (
  errors: ReadonlyArray<ErrorCode>,
  { family, status: statusOf }: ErrorShape
): ReadonlyMap<number, ReadonlyArray<ErrorCode>> => {
  const statuses = new Map<number, Array<ErrorCode>>()
  for (const code of errors) {
    const status = statusOf(gatewayError(code, ""))
    const known = statuses.get(status)
    if (known === undefined) statuses.set(status, [code])
    else if (!known.includes(code)) known.push(code)
  }
  if (family === undefined || !errors.includes("upstream_error")) return statuses
  for (const status of passedStatuses) if (!statuses.has(status)) statuses.set(status, [])
  return statuses
}

interface Said extends Documentation {
  readonly access: Access
  readonly shape: ErrorShape
}

type Everything = ReadonlyMap<string, Said>

const everythingSaid = <Id extends string, Groups extends HttpApiGroup.Constraint>(
  api: HttpApi.HttpApi<Id, Groups>
): Everything => {
  const said = new Map<string, Said>()
  HttpApi.reflect(api, {
    onGroup: () => undefined,
    onEndpoint({ endpoint, group, mergedAnnotations }) {
      const documented = Context.getOption(mergedAnnotations, Documented)
      if (Option.isSome(documented)) {
        const { access, errors: shape } = policyOf(endpoint)
        const isForAdmins = access === "admin" && roleOf(group.identifier, endpoint.identifier) === "admin"
        const errors = [...documented.value.errors, ...(isForAdmins ? ["role_not_allowed" as const] : [])]
        said.set(`${group.identifier}.${endpoint.identifier}`, { access, shape, ...documented.value, errors })
      }
    }
  })
  return said
}

const describeResponses = (
  responses: SpecOperation["responses"],
  { errors, shape }: Said,
  summary: string
): SpecOperation["responses"] => {
  const statuses = statusesOf(errors, shape)
  return Object.fromEntries(
    Object.entries(responses).flatMap(([key, response]) => {
      const status = Number(key)
      const content = response.content === undefined ? {} : { content: describeContent(response.content) }
      if (status < 400) {
        return [[status, { description: summary, ...content, headers: { "X-Request-Id": requestIdHeader } }]]
      }
      const codes = statuses.get(status)
      if (codes === undefined) return []
      const retried = status === 529 || codes.some((code) => errorTable[code].retry)
      return [[status, {
        description: codes.length === 0 ? "The server's own error" : codes.map((code) => `\`${code}\``).join(", "),
        ...content,
        headers: {
          "X-Request-Id": requestIdHeader,
          "X-Gateway-Fault": faultOfError,
          ...(retried ? { "Retry-After": retryAfterHeader } : {})
        }
      }]]
    })
  )
}

const describeBody = (
  { content, ...body }: NonNullable<SpecOperation["requestBody"]>,
  { example, mayBeEmpty }: Documentation
): NonNullable<SpecOperation["requestBody"]> => {
  const described = {
    ...body,
    content: Object.fromEntries(
      Object.entries(content).map(([type, media]) => [type, example === undefined ? media : { ...media, example }])
    )
  }
  // The library's type knows required bodies alone.
  return mayBeEmpty === true ? { ...described, required: false as true } : described
}

const describeOperation = (operation: SpecOperation, everything: Everything): SpecOperation => {
  const said = everything.get(operation.operationId)
  if (said === undefined) return operation
  const { access, example } = said
  const called = access === "business" || access === "anyForm"
  return {
    ...operation,
    security: requirements[access].map((scheme) => ({ [scheme]: [] })),
    parameters: called && example !== undefined ? [...operation.parameters, targetAccount] : operation.parameters,
    ...(operation.requestBody === undefined ? {} : { requestBody: describeBody(operation.requestBody, said) }),
    responses: describeResponses(operation.responses, said, operation.summary ?? "")
  }
}

const probes: ReadonlySet<string> = new Set(["/healthz", "/readyz"])

/** `HEAD` of a probe is its `GET` without a body (spec "Health"). */
const headOf = (get: SpecOperation): SpecOperation => ({
  ...get,
  operationId: `${get.operationId}.head`,
  responses: Object.fromEntries(
    Object.entries(get.responses).map(([status, { content: _, ...response }]) => [status, response])
  )
})

const describePath = (path: string, item: PathItem, everything: Everything): PathItem => {
  const described: PathItem = { ...item }
  for (const method of ["get", "post", "put", "patch", "delete"] as const) {
    const operation = item[method]
    if (operation !== undefined) described[method] = describeOperation(operation, everything)
  }
  if (probes.has(path) && described.get !== undefined) described.head = headOf(described.get)
  return described
}

/** Removes the ban on additional fields at every depth. */
const lenient = (schema: unknown): unknown => {
  if (Array.isArray(schema)) return schema.map(lenient)
  if (typeof schema !== "object" || schema === null) return schema
  return Object.fromEntries(
    Object.entries(schema).flatMap(([key, value]) =>
      key === "additionalProperties" && value === false ? [] : [[key, lenient(value)]]
    )
  )
}

/** Completes the document of `OpenApi.fromApi`. */
export const completeDocument = <Id extends string, Groups extends HttpApiGroup.Constraint>(
  api: HttpApi.HttpApi<Id, Groups>,
  spec: Spec
): Spec => {
  const everything = everythingSaid(api)
  const completed: Spec = {
    ...spec,
    paths: Object.fromEntries(
      Object.entries(spec.paths).map(([path, item]) => [path, describePath(path, item, everything)])
    ),
    components: { schemas: spec.components.schemas, securitySchemes }
  }
  return lenient(completed) as Spec
}
