/**
 * A hosting platform for tests: the part of its REST API that a sync calls, on a real socket, with failures on request.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

export interface PlatformVariable {
  readonly id: string
  readonly key: string
  value: string
  readonly type: string
  readonly target: ReadonlyArray<string> | string
}

/** A call of the API by its purpose. */
export type PlatformCall = "list" | "change" | "add" | "project" | "deploy"

/** How a call fails. `after`: the call takes effect, and then the connection breaks. */
export type PlatformFault =
  | { readonly status: number; readonly body?: unknown; readonly headers?: Readonly<Record<string, string>> }
  | { readonly reset: "before" | "after" }

export interface SeenCall {
  readonly call: PlatformCall
  readonly method: string
  readonly url: URL
  readonly authorization: string | undefined
  readonly body: unknown
}

export interface HostingPlatform {
  readonly url: string
  readonly token: string
  readonly projectId: string
  readonly variables: Array<PlatformVariable>
  /** The project's repository; `null` if it has no repository. */
  link: Readonly<Record<string, unknown>> | null
  readonly deployments: Array<Record<string, unknown>>
  readonly calls: Array<SeenCall>
  /** Makes the next call of this kind fail. */
  readonly fail: (call: PlatformCall, fault: PlatformFault) => void
  readonly stop: () => Promise<void>
}

export const githubLink = { type: "github", repo: "gateway", repoId: 4711, productionBranch: "release" }

const routes: ReadonlyArray<readonly [RegExp, PlatformCall]> = [
  [/^GET \/v9\/projects\/([^/]+)\/env$/, "list"],
  [/^PATCH \/v9\/projects\/([^/]+)\/env\/([^/]+)$/, "change"],
  [/^POST \/v10\/projects\/([^/]+)\/env$/, "add"],
  [/^GET \/v9\/projects\/([^/]+)$/, "project"],
  [/^POST \/v13\/deployments$/, "deploy"]
]

const bodyOf = async (request: IncomingMessage): Promise<unknown> => {
  const pieces: Array<Buffer> = []
  for await (const piece of request) pieces.push(piece as Buffer)
  const text = Buffer.concat(pieces).toString()
  return text === "" ? undefined : JSON.parse(text)
}

const send = (
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {}
) => {
  response.writeHead(status, { "content-type": "application/json", ...headers })
  response.end(typeof body === "string" ? body : JSON.stringify(body))
}

const refuse = (code: string, message: string) => ({ error: { code, message } })

/** Starts a platform with one project. */
export const startPlatform = async (): Promise<HostingPlatform> => {
  const faults = new Map<PlatformCall, PlatformFault>()
  let made = 0

  const act = ({ body, call, url }: SeenCall): readonly [number, unknown] => {
    const given = body as Record<string, unknown>
    switch (call) {
      case "list":
        return [200, { envs: platform.variables.map(({ value: _, ...shown }) => shown) }]
      case "change": {
        const variable = platform.variables.find(({ id }) => url.pathname.endsWith(`/${id}`))
        if (variable === undefined) return [404, refuse("not_found", "no such variable")]
        variable.value = String(given["value"])
        return [200, { id: variable.id }]
      }
      case "add":
        platform.variables.push({ id: `env_${++made}`, ...given } as PlatformVariable)
        return [201, { created: { id: `env_${made}` } }]
      case "project":
        return [200, { id: platform.projectId, name: "my-gateway", link: platform.link }]
      case "deploy":
        platform.deployments.push(given)
        return [200, {
          id: `dpl_${platform.deployments.length}`,
          url: `my-gateway-${platform.deployments.length}.example`
        }]
    }
  }

  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? "/", "http://platform")
    const found = routes.find(([pattern]) => pattern.test(`${request.method} ${url.pathname}`))
    const body = await bodyOf(request)
    if (found === undefined) return send(response, 404, refuse("not_found", "no such route"))
    const { authorization } = request.headers
    const seen: SeenCall = { call: found[1], method: request.method!, url, authorization, body }
    platform.calls.push(seen)
    const fault = faults.get(seen.call)
    faults.delete(seen.call)
    if (fault !== undefined && "status" in fault) return send(response, fault.status, fault.body ?? "", fault.headers)
    if (fault?.reset === "before") return request.socket.destroy()
    if (authorization !== `Bearer ${platform.token}`) {
      return send(response, 403, refuse("forbidden", `Not authorized: ${authorization}`))
    }
    const project = found[0].exec(`${request.method} ${url.pathname}`)?.[1]
    if (project !== undefined && decodeURIComponent(project) !== platform.projectId) {
      return send(response, 404, refuse("not_found", "Project not found"))
    }
    const [status, answer] = act(seen)
    if (fault?.reset === "after") return request.socket.destroy()
    send(response, status, answer)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo

  const platform: HostingPlatform = {
    url: `http://127.0.0.1:${port}`,
    token: "platform-token-0123456789",
    projectId: "prj_my gateway",
    variables: [],
    link: githubLink,
    deployments: [],
    calls: [],
    fail: (call, fault) => faults.set(call, fault),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
  }
  return platform
}
