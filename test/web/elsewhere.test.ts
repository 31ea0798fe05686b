/**
 * The console away from the root, in Chromium: behind a proxy that strips a prefix, mounted in another app, and on a page that
 * is not a secure context.
 */
import { NodeHttpClient, NodeHttpServer, NodeServices } from "@effect/platform-node"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Logger, Scope } from "effect"
import { HttpRouter, HttpServer, HttpServerResponse } from "effect/http"
import { createServer, request, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { networkInterfaces } from "node:os"
import type { Browser } from "playwright-core"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { mountConsole } from "../../src/console.ts"
import { GatewayServices, mountGateway } from "../../src/index.ts"
import { adminKey, businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { goTo, launch, open, openPreferences, result, signIn } from "./support.ts"

let browser: Browser
let gateway: RunningGateway

beforeAll(async () => {
  ;[browser, gateway] = await Promise.all([launch(), startGateway()])
})
afterAll(async () => {
  await browser.close()
  await gateway.stop()
})

/** A proxy that forwards requests below a prefix to the gateway, without the prefix. */
const startProxy = (prefix: string, host: string): Promise<Server> =>
  new Promise((resolve) => {
    const proxy = createServer((incoming, outgoing) => {
      const url = incoming.url ?? "/"
      if (!url.startsWith(prefix)) return void outgoing.writeHead(404).end()
      const { hostname, port } = new URL(gateway.url)
      const onward = request(
        { hostname, port, path: url.slice(prefix.length), method: incoming.method, headers: incoming.headers },
        (reply) => {
          outgoing.writeHead(reply.statusCode!, reply.headers)
          reply.pipe(outgoing)
        }
      )
      onward.on("error", () => outgoing.destroy())
      outgoing.on("close", () => onward.destroy())
      return void incoming.pipe(onward)
    })
    proxy.listen(0, host, () => resolve(proxy))
  })

const stop = (server: Server): Promise<void> =>
  new Promise((resolve) => {
    server.closeAllConnections()
    server.close(() => resolve())
  })

/** Signs in, reloads, uses the admin API and a style, and signs out. */
const works = async (base: string): Promise<void> => {
  const { close, page } = await open(browser, `${base}/console`)
  await signIn(page)
  await page.reload()
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor()
  await goTo(page, "Keys")
  await page.getByRole("button", { name: "New key" }).click()
  await page.getByText("Note, concurrent requests, own key").click()
  await page.getByRole("textbox", { name: "Own key" }).fill("a-key-from-elsewhere")
  await page.getByRole("button", { name: "Create key" }).click()
  await page.getByRole("button", { name: "Close" }).click()
  await result(page).getByText("a-key-... was added.").or(result(page).getByText("a-key-f... was added.")).waitFor()
  await goTo(page, "Playground")
  await page.getByRole("textbox", { name: "Message" }).fill("Hello from below")
  await page.getByRole("button", { name: "Send" }).click()
  await page.getByRole("log").getByText("You said: “Hello from below”").waitFor()
  await openPreferences(page)
  await page.getByRole("button", { name: "Sign out" }).click()
  await page.getByRole("heading", { level: 1, name: "Sign in" }).waitFor()
  await close()
}

describe("the console away from the root", () => {
  it("works behind a proxy that strips a prefix", async () => {
    const proxy = await startProxy("/team/gateway", "127.0.0.1")
    try {
      await works(`http://127.0.0.1:${(proxy.address() as AddressInfo).port}/team/gateway`)
    } finally {
      await stop(proxy)
    }
  })

  it("works mounted in another app, and leaves the app's pages alone", async () => {
    const App = Layer.mergeAll(
      mountGateway("/ai"),
      mountConsole("/ai"),
      HttpRouter.add("GET", "/", HttpServerResponse.text("the app"))
    ).pipe(
      Layer.provide(GatewayServices),
      Layer.provide(ConfigStore.layerJson({ keys: [businessKey] }, { adminKey })),
      Layer.provide([NodeHttpClient.layerUndici, NodeServices.layer, Logger.layer([])])
    )
    const server = HttpRouter.serve(App, { disableLogger: true, disableListenLog: true }).pipe(
      Layer.provideMerge(NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1" }))
    )
    const scope = Scope.makeUnsafe()
    const services = await Effect.runPromise(Layer.buildWithScope(server, scope))
    const base = HttpServer.formatAddress(Context.get(services, HttpServer.HttpServer).address)
    try {
      await works(`${base}/ai`)
      assert.strictEqual(await (await fetch(base)).text(), "the app")
    } finally {
      await Effect.runPromise(Scope.close(scope, Exit.void))
    }
  })

  it("keeps the sign-in in memory on a page that is not a secure context, and says so", async (context) => {
    const address = Object.values(networkInterfaces()).flat().find((each) =>
      each !== undefined && !each.internal && each.family === "IPv4"
    )?.address
    // Without a network, every address of the machine is a secure context.
    if (address === undefined) return context.skip()
    const proxy = await startProxy("", address)
    try {
      const { close, context: tab, page } = await open(
        browser,
        `http://${address}:${(proxy.address() as AddressInfo).port}/console/`
      )
      await page.getByText("the sign-in ends with the page").waitFor()
      await signIn(page)
      await goTo(page, "Keys")
      await page.getByText("the sign-in ends with the page").waitFor()
      await page.getByRole("table", { name: "Keys" }).getByRole("row").nth(1).waitFor()
      assert.deepStrictEqual(await tab.cookies(), [])
      await page.reload()
      await page.getByRole("heading", { level: 1, name: "Sign in" }).waitFor()
      await close()
    } finally {
      await stop(proxy)
    }
    return undefined
  })
})
