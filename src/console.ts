/**
 * `model-gateway/console`: the web console, for apps that mount the gateway in their own router. An app that does not import
 * this module does not contain the console.
 *
 * `mountConsole(path)` serves the console at `path`/console/, for the gateway that `mountGateway(path)` serves.
 * `ConsoleRoutes` serves it beside `GatewayRoutes`, in a router of the gateway's own.
 */
export { ConsoleRoutes, mountConsole } from "./server/console/routes.ts"
