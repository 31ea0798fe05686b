/** The list of styles, and what is made of it: the policy of each path, and which styles play samples. */
import { assert, describe, it } from "@effect/vitest"
import { HttpApi } from "effect/http-api"
import * as fc from "fast-check"
import { generateErrors } from "../../src/contracts/generate/clientErrors.ts"
import { messagesErrors } from "../../src/contracts/messages/errors.ts"
import { openaiErrors } from "../../src/contracts/shared/openaiErrors.ts"
import { type EndpointPolicy, policyOf } from "../../src/http/EndpointPolicy.ts"
import { detailErrors } from "../../src/http/errorShapes.ts"
import { GatewayApi } from "../../src/server/Api.ts"
import { policiesOfPaths } from "../../src/server/fallback.ts"
import { playedStyles, replyPath } from "../../src/styles/Style.ts"
import { styles } from "../../src/styles/styles.ts"

const policyOfPath = policiesOfPaths(GatewayApi)

const endpoints = () => {
  const found: Array<{ readonly path: string; readonly policy: EndpointPolicy }> = []
  HttpApi.reflect(GatewayApi, {
    onGroup: () => undefined,
    onEndpoint: ({ endpoint }) => found.push({ path: endpoint.path, policy: policyOf(endpoint) })
  })
  return found
}

describe("the policy of a path", () => {
  it("comes from the path's route", () => {
    for (const { path, policy } of endpoints()) {
      const asked = path.replaceAll(/\/:\w+/g, "/anything")
      assert.strictEqual(policyOfPath(asked).errors, policy.errors, path)
      assert.strictEqual(policyOfPath(`${asked}/`).errors, policy.errors, path)
    }
  })

  it("comes from the route that it is most like where none takes it", () => {
    const families = [
      [openaiErrors, ["/", "/v1", "/v1/", "/v1/none", "/v1/models/a/b", "/none", "/v2/messages", "/v1/responses/a/b"]],
      [messagesErrors, ["/messages/none", "/v1/messages/batches", "/msgcompat/v2/messages", "/msgcompat"]],
      [generateErrors, ["/v1beta/none", "/v1beta", "/v1/models/a:none", "/v1beta/models/a:b/c"]],
      [detailErrors, ["/admin", "/admin/none", "/admin/keys/a/b", "/metrics/none"]]
    ] as const
    for (const [errors, paths] of families) {
      for (const path of paths) assert.strictEqual(policyOfPath(path).errors, errors, path)
    }
  })

  it("is found for whatever stands for a path", () => {
    fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => {
      assert.isDefined(policyOfPath(`/${text}`).errors)
    }))
  })
})

describe("the path at which a style is asked for a reply", () => {
  it.each(playedStyles.flatMap((style) => [[style, false], [style, true]] as const))(
    "is one of its endpoints: %s, streamed %s",
    (style, stream) => {
      const asked = new URL(replyPath(style, "a/b", stream), "http://localhost").pathname
      const { endpoints } = styles.find(({ group }) => group.identifier === style)!.group
      const paths = Object.values<{ readonly path: string }>(endpoints).map(({ path }) => path)
      assert.include(paths.map((path) => path.replace(":model", encodeURIComponent("a/b"))), asked)
    }
  )
})
