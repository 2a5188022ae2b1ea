/** Of the platform's own module, what is used: the base that makes the methods of a class callable by RPC. */
declare module "cloudflare:workers" {
  export const DurableObject: new (ctx: object, env: unknown) => object;
}
