// A certified OpenID provider as the identity provider of a service: identity-provider.mjs PUBLIC.
//
// PUBLIC is the address of the service. Prints the address of the provider. A test says who sits in
// front of the browser (POST /test/person/NAME), has the keys replaced (POST /test/keys), and has
// access tokens be random texts (POST /test/opaque). The groups of a person are in the claim
// `groups`.

import { generateKeyPairSync, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import Provider from "oidc-provider";

const [service] = process.argv.slice(2);
const groups = { ada: ["engineering"], bob: ["guests"] };
let person, handle, address;
let format = "jwt";

const server = createServer((request, response) => {
  const [, test, what, name] = request.url.split("/");
  if (test !== "test") return handle(request, response);
  if (what === "person") person = name;
  if (what === "keys") handle = makeProvider().callback();
  if (what === "opaque") format = "opaque";
  response.end();
});

function newKey() {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return { ...privateKey.export({ format: "jwk" }), kid: randomUUID(), alg: "ES256", use: "sig" };
}

function makeProvider() {
  const provider = new Provider(address, {
    jwks: { keys: [newKey()] },
    cookies: { keys: ["the key of the cookies"] },
    clients: [
      {
        client_id: "robot",
        client_secret: "secret",
        grant_types: ["client_credentials"],
        redirect_uris: [],
        response_types: [],
      },
      {
        client_id: "dormouse",
        client_secret: "secret",
        redirect_uris: [`${service}/login/person/127.0.0.1`],
      },
    ],
    clientDefaults: { id_token_signed_response_alg: "ES256" },
    scopes: ["openid", "mcp"],
    claims: { openid: ["sub"], mcp: ["groups"] },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, groups: groups[id] }) }),
    extraTokenClaims: (_, token) => ({ groups: groups[token.accountId] ?? ["robots"] }),
    interactions: { url: (_, { uid }) => `/interaction/${uid}` },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      introspection: { enabled: true },
      resourceIndicators: {
        enabled: true,
        // A code is redeemed for a token for the resource that was asked for with it.
        useGrantedResource: () => true,
        getResourceServerInfo: (_, resource) => ({
          scope: "mcp",
          audience: resource,
          accessTokenFormat: format,
          jwt: { sign: { alg: "ES256" } },
        }),
      },
    },
  });
  // Nobody looks at the pages: the person is known, and agrees.
  provider.use(async (context, next) => {
    if (!context.path.startsWith("/interaction/")) return next();
    const { req, res } = context;
    const { prompt, params } = await provider.interactionDetails(req, res);
    if (prompt.name === "login") {
      return provider.interactionFinished(req, res, { login: { accountId: person } });
    }
    const grant = new provider.Grant({ accountId: person, clientId: params.client_id });
    grant.addOIDCScope("openid mcp");
    grant.addResourceScope(`${service}/mcp`, "mcp");
    return provider.interactionFinished(req, res, { consent: { grantId: await grant.save() } });
  });
  return provider;
}

server.listen(0, "127.0.0.1", () => {
  address = `http://127.0.0.1:${server.address().port}`;
  handle = makeProvider().callback();
  console.log(address);
});
