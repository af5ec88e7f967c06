//! Finds handlers on paths as frameworks make them.

use std::path::Path;

use super::*;
use crate::{
    model::frame::{Frame, FrameKind},
    report::profile::Paths,
};

/// A path of methods, `class.name`, root → leaf. What begins with `!` is native.
fn push(paths: &mut Paths, methods: &[&str]) -> PathIndex {
    let frame = |method: &&str| match (method.strip_prefix('!'), method.rsplit_once('.')) {
        (None, Some((class, name))) => Frame { class: Some(class.into()), ..Frame::new(FrameKind::Compiled, name) },
        (native, _) => Frame::new(FrameKind::Native, native.unwrap_or(method)),
    };
    let frames: Vec<FrameIndex> = methods.iter().map(|method| paths.frame_index(frame(method))).collect();
    paths.push(frames)
}

/// What a path's handler is called, by built-in rules.
fn found(methods: &[&str]) -> Option<(String, String)> {
    let mut paths = Paths::default();
    let path = push(&mut paths, methods);
    let handlers = Handlers::of(&Rules::built_in(), &paths);
    handlers.get(path).map(|handler| (handler.method.to_string(), handler.framework.to_string()))
}

fn expect(methods: &[&str], handler: &str, framework: &str) {
    assert_eq!(found(methods), Some((handler.to_owned(), framework.to_owned())), "{methods:?}");
}

const SPRING: [&str; 5] = [
    "org.apache.catalina.core.ApplicationFilterChain.internalDoFilter",
    "jakarta.servlet.http.HttpServlet.service",
    "org.springframework.web.servlet.FrameworkServlet.service",
    "jakarta.servlet.http.HttpServlet.service",
    "org.springframework.web.servlet.DispatcherServlet.doDispatch",
];

fn after_spring(methods: &[&'static str]) -> Vec<&'static str> {
    [SPRING.as_slice(), methods].concat()
}

#[test]
fn rules_that_come_with_the_program_are_understood() {
    let rules = Rules::parse(include_str!("rules.toml"), Path::new("rules.toml")).unwrap();
    assert!(rules.rules.len() > 20 && rules.rules.iter().all(|rule| !rule.dispatchers.allow_all()));
    let mut names: Vec<&str> = rules.rules.iter().map(|rule| rule.framework.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), rules.rules.len());
}

#[test]
fn spring_calls_methods_of_controllers_through_reflection_and_proxies() {
    let invoke = "org.springframework.web.method.support.InvocableHandlerMethod.doInvoke";
    let plain = [invoke, "java.lang.reflect.Method.invoke", "jdk.internal.reflect.DirectMethodHandleAccessor.invoke"];
    let own = ["shop.OrderController.update", "shop.Orders.save"];
    expect(&after_spring(&[plain.as_slice(), &own].concat()), "shop.OrderController.update", "Spring MVC");
    let proxied = [
        invoke,
        "sun.reflect.GeneratedMethodAccessor12.invoke",
        "shop.OrderController$$SpringCGLIB$$0.update",
        "org.springframework.aop.framework.CglibAopProxy$DynamicAdvisedInterceptor.intercept",
        "org.springframework.transaction.interceptor.TransactionInterceptor.invoke",
    ];
    expect(&after_spring(&[proxied.as_slice(), &own].concat()), "shop.OrderController.update", "Spring MVC");
}

/// Stacks as they were recorded, beginning where one is served. `tests/fixtures/servers/shop` has the programs.
#[test]
fn frameworks_that_were_recorded_have_handlers() {
    let mut stacks = 0;
    for text in include_str!("recorded.txt").split("# ").skip(1) {
        let (title, methods) = text.split_once('\n').unwrap();
        let methods: Vec<&str> = methods.lines().filter(|line| !line.is_empty()).collect();
        let (_, expected) = title.rsplit_once(": ").unwrap();
        let expected = expected.split_once(", ").map(|(method, framework)| (method.to_owned(), framework.to_owned()));
        assert_eq!(found(&methods), expected, "{title}");
        stacks += 1;
    }
    assert!(stacks > 10, "{stacks}");
}

/// As published traces have it.
#[test]
fn interceptors_and_filters_are_not_handlers_unless_they_work_themselves() {
    let invoke = "org.springframework.web.method.support.InvocableHandlerMethod.doInvoke";
    let aspect = [
        invoke,
        "shop.OrderController$$EnhancerBySpringCGLIB$$1.update",
        "org.springframework.aop.framework.CglibAopProxy$DynamicAdvisedInterceptor.intercept",
        "org.springframework.aop.aspectj.AspectJAroundAdvice.invoke",
        "java.lang.reflect.Method.invoke",
        "shop.LogAspect.around",
        "java.util.Optional.map",
        "shop.LogAspect$$Lambda.apply",
        "shop.LogAspect.proceed",
    ];
    let controller = [
        "org.springframework.aop.aspectj.MethodInvocationProceedingJoinPoint.proceed",
        "org.springframework.aop.framework.ReflectiveMethodInvocation.proceed",
        "org.springframework.aop.framework.CglibAopProxy$CglibMethodInvocation.invokeJoinpoint",
        "shop.OrderController$$FastClassBySpringCGLIB$$2.invoke",
        "shop.OrderController.update",
    ];
    let service = [
        "shop.Orders$$EnhancerBySpringCGLIB$$3.save",
        "org.springframework.aop.framework.CglibAopProxy$DynamicAdvisedInterceptor.intercept",
        "org.springframework.transaction.interceptor.TransactionInterceptor.invoke",
        "org.springframework.aop.framework.ReflectiveMethodInvocation.proceed",
        "shop.Orders.save",
    ];
    let behind = [aspect.as_slice(), &controller, &service].concat();
    expect(&after_spring(&behind), "shop.OrderController.update", "Spring MVC");
    expect(
        &after_spring(&[&[invoke][..], &controller[4..], &service].concat()),
        "shop.OrderController.update",
        "Spring MVC",
    );
    expect(&after_spring(&aspect), "shop.LogAspect.around", "Spring MVC");
    let services =
        ["javax.servlet.http.HttpServlet.service", "shop.Page.service", "javax.servlet.http.HttpServlet.service"];
    expect(&[services.as_slice(), &["shop.Cart.doGet"]].concat(), "shop.Cart.doGet", "Servlet");
}

/// A body that is read for a handler, and servlets of servers and frameworks.
#[test]
fn what_frameworks_do_for_all_handlers_has_none() {
    let jackson = ["com.fasterxml.jackson.databind.ObjectReader.readValue"];
    for methods in [
        &[
            "org.jboss.resteasy.core.MethodInjectorImpl.invoke",
            "org.jboss.resteasy.core.MethodInjectorImpl.injectArguments",
        ][..],
        &[
            "org.glassfish.jersey.server.model.internal.AbstractJavaResourceMethodDispatcher.dispatch",
            "org.glassfish.jersey.server.spi.internal.ParameterValueHelper.getParameterValues",
        ],
        &[
            "com.sun.jersey.server.impl.model.method.dispatch.ResourceJavaMethodDispatcher.dispatch",
            "com.sun.jersey.server.impl.inject.InjectableValuesProvider.getInjectableValues",
        ],
        &["jakarta.servlet.http.HttpServlet.service", "org.springframework.web.servlet.FrameworkServlet.doGet"],
        &[
            "org.eclipse.jetty.server.Server.handle",
            "org.eclipse.jetty.ee10.servlet.ServletHandler.handle",
            "shop.AuthFilter.doFilter",
        ],
        &[
            "io.undertow.server.Connectors.executeRootHandler",
            "io.undertow.servlet.handlers.FilterHandler.handleRequest",
        ],
    ] {
        assert_eq!(found(&[methods, &jackson].concat()), None, "{methods:?}");
    }
    let files = ["jakarta.servlet.http.HttpServlet.service", "org.apache.catalina.servlets.DefaultServlet.doGet"];
    assert_eq!(found(&files), None);
}

#[test]
fn what_a_framework_does_before_and_after_a_handler_has_none() {
    for methods in [
        after_spring(&["com.fasterxml.jackson.databind.ObjectMapper.writeValue"]),
        after_spring(&["org.springframework.web.method.support.InvocableHandlerMethod.doInvoke"]),
        SPRING.to_vec(),
        vec!["java.lang.Thread.run", "shop.Cleaner.run"],
        vec!["!start_thread", "!read"],
    ] {
        assert_eq!(found(&methods), None, "{methods:?}");
    }
}

#[test]
fn a_servlet_and_a_page_are_handlers_and_what_they_include_is_theirs() {
    let service = "javax.servlet.http.HttpServlet.service";
    let jasper =
        ["org.apache.jasper.servlet.JspServlet.service", service, "org.apache.jasper.runtime.HttpJspBase.service"];
    let page = [&[service], jasper.as_slice(), &["org.apache.jsp.index_jsp._jspService"]].concat();
    expect(&page, "org.apache.jsp.index_jsp._jspService", "Servlet");
    let including = [page.as_slice(), &["org.apache.catalina.core.ApplicationDispatcher.include"], &page[..4]].concat();
    expect(
        &[including.as_slice(), &["org.apache.jsp.part_jsp._jspService"]].concat(),
        "org.apache.jsp.index_jsp._jspService",
        "Servlet",
    );
    expect(&[service, "!jni", "shop.Cart.doGet"], "shop.Cart.doGet", "Servlet");
}

#[test]
fn other_frameworks_name_their_handlers() {
    for (methods, handler, framework) in [
        (
            &[
                "shop.OrderResource$quarkusrestinvoker$list_a1b2.invoke",
                "shop.OrderResource_ClientProxy.list",
                "shop.OrderResource.list",
            ][..],
            "shop.OrderResource.list",
            "Quarkus REST",
        ),
        (
            &[
                "jakarta.servlet.http.HttpServlet.service",
                "org.glassfish.jersey.servlet.ServletContainer.service",
                "org.glassfish.jersey.server.model.internal.AbstractJavaResourceMethodDispatcher.invoke",
                "java.lang.reflect.Method.invoke",
                "shop.Orders.get",
            ],
            "shop.Orders.get",
            "Jersey",
        ),
        (&["shop.CartGrpc$MethodHandlers.invoke", "shop.CartService.add"], "shop.CartService.add", "gRPC"),
        (
            &[
                "com.sun.net.httpserver.Filter$Chain.doFilter",
                "sun.net.httpserver.AuthFilter.doFilter",
                "shop.Main.lambda$main$0",
            ],
            "shop.Main.lambda$main$0",
            "JDK's HTTP server",
        ),
        (
            &[
                "org.springframework.scheduling.support.ScheduledMethodRunnable.run",
                "java.lang.reflect.Method.invoke",
                "shop.Cleaner.sweep",
            ],
            "shop.Cleaner.sweep",
            "Spring Scheduling",
        ),
        (
            &[
                "io.vertx.ext.web.impl.RouteState.handleContext",
                "shop.Auth.handle",
                "io.vertx.ext.web.impl.RoutingContextImpl.next",
                "io.vertx.ext.web.impl.RouteState.handleContext",
                "shop.Cart.handle",
            ],
            "shop.Cart.handle",
            "Vert.x Web",
        ),
        (
            &[
                "io.micronaut.web.router.DefaultRouteBuilder$AbstractRoute.execute",
                "shop.$Cart$Definition$Exec.dispatch",
                "shop.$Cart$Definition$Intercepted.$$access$$list",
                "shop.Cart.list",
            ],
            "shop.Cart.list",
            "Micronaut",
        ),
        (
            &[
                "spark.http.matching.Routes.execute",
                "spark.RouteImpl$1.handle",
                "shop.Main$$Lambda.handle",
                "shop.Main.lambda$main$3",
            ],
            "shop.Main.lambda$main$3",
            "Spark Java",
        ),
        (
            &[
                "org.eclipse.jetty.server.Server.handle",
                "org.eclipse.jetty.server.Handler$Wrapper.handle",
                "shop.Hello.handle",
            ],
            "shop.Hello.handle",
            "Jetty",
        ),
    ] {
        expect(methods, handler, framework);
    }
}

#[test]
fn rules_of_a_file_come_first_and_those_that_are_not_understood_are_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let read = |text: &str| {
        std::fs::write(file.path(), text).unwrap();
        Rules::read(file.path())
    };
    let rules = "[[rule]]\nframework = \"ours\"\ndispatchers = [\"shop.Bus.*\"]\nskip = [\"shop.Wrapper.*\"]\nexcept = [\"shop.Idle.*\"]\n";
    let rules = read(rules).unwrap();
    let mut paths = Paths::default();
    let servlet = "javax.servlet.http.HttpServlet.service";
    let taken =
        push(&mut paths, &[servlet, "shop.Page.doGet", "shop.Bus.send", "shop.Wrapper.call", "shop.Order.take"]);
    let other = push(&mut paths, &[servlet, "shop.Page.doGet"]);
    let idle = push(&mut paths, &["shop.Bus.send", "shop.Idle.wait"]);
    let handlers = Handlers::of(&rules, &paths);
    let name = |path| handlers.get(path).map(|handler| handler.method.to_string());
    assert_eq!(
        [taken, other, idle].map(name),
        [Some("shop.Order.take".to_owned()), Some("shop.Page.doGet".to_owned()), None]
    );
    assert_eq!(handlers.number(taken), Some(0));
    for (text, expected) in [
        ("[[rule]]\nframework = \"x\"\ndispatchers = []\n", "framework x has no dispatchers"),
        ("[[rule]]\nframework = \"x\"\ndispatchers = [\"[\"]\n", "framework x: '[' is not a pattern"),
        ("[[rule]]\nframework = \"x\"\n", "missing field `dispatchers`"),
        ("rules = []\n", "unknown field `rules`"),
    ] {
        let message = read(text).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
    assert!(
        Rules::read(Path::new("/nowhere/rules.toml")).unwrap_err().to_string().starts_with("reading rules of handlers")
    );
}
