/**
 * `model-gateway/console`: the web console, for apps that serve the gateway within their own router. An app that does not
 * import it carries nothing of it.
 *
 * `mountConsole(path)` serves the console at `path`/console/, for the gateway that `mountGateway(path)` serves;
 * `ConsoleRoutes` are its routes beside `GatewayRoutes`, in a router of the gateway's own.
 */
export { ConsoleRoutes, mountConsole } from "./server/console/routes.ts"
